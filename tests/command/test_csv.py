"""--csv: records as RFC 4180 has them, beside Python's csv module; headers, and quotes that are never closed."""

import csv
import gzip
import io
import random
import unittest

from support import CommandTest, sample

EXACT = "-n", 100_000, "-p", "1e-9"


def records_of(data: bytes) -> tuple[list[bytes], bool]:
    """The records with their line breaks, byte by byte, and whether a quote is open at the end."""
    records, start, quoted, at_start = [], 0, False, True
    at = 0
    while at < len(data):
        byte = data[at : at + 1]
        if quoted:
            if byte == b'"' and data[at + 1 : at + 2] == b'"':
                at += 1
            elif byte == b'"':
                quoted = False
        elif byte == b'"' and at_start:
            quoted = True
        elif byte == b"\n":
            records.append(data[start : at + 1])
            start = at + 1
        at_start = not quoted and byte in (b",", b"\n")
        at += 1
    return records + ([data[start:]] if start < len(data) else []), quoted


def rows_of(data: bytes) -> list[list[str]]:
    return [row or [""] for row in csv.reader(io.StringIO(data.decode("latin-1"), newline=""))]


class Csv(CommandTest):
    def dedup(self, *arguments: object, **options) -> bytes:
        return self.bloomery("dedup", "-q", *EXACT, "--csv", *arguments, **options).out

    def expected(self, data: bytes, columns: list[int]) -> bytes:
        (records, _), rows = records_of(data), rows_of(data)
        self.assertEqual(len(records), len(rows), "the test's own splitter")
        seen, out = set(), b""
        for record, row in zip(records, rows):
            key = tuple(row[c] if c < len(row) else "" for c in columns)
            if key not in seen:
                seen.add(key)
                out += record if record.endswith(b"\n") else record + b"\n"
        return out

    def test_random_tables_agree_with_pythons_csv_module(self) -> None:
        chance = random.Random(11)
        pieces = ['""', '"', ",", "\n", "\r\n", "a", "b", " ", "x" * 40, "é", "1"]
        for round in range(12):
            out = io.StringIO()
            writer = csv.writer(out, lineterminator=chance.choice(["\n", "\r\n"]),
                                quoting=chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
            for _ in range(2000):
                writer.writerow(["".join(chance.choices(pieces, k=chance.randrange(4))) for _ in range(chance.randrange(1, 5))])
            data = out.getvalue().encode()
            if round % 2:
                data = data.rstrip(b"\r\n")
            columns = chance.choice([[0], [1], [1, 0], [0, 2, 3]])
            fields = ",".join(str(c + 1) for c in columns)
            self.assertEqual(self.dedup("-f", fields, stdin=data), self.expected(data, columns), (round, fields))

    def test_quotes_where_they_do_not_belong_are_read_as_python_reads_them(self) -> None:
        chance = random.Random(12)
        whole, not_closed = b"", []
        for _ in range(200):
            data = "".join(chance.choices(['"', '"', ",", "\n", "a", "b"], k=300)).encode()
            if records_of(data)[1]:
                not_closed.append(data)
                data += b'"'
            whole += data + b"\n"
        self.assertEqual(self.dedup("-f", "1,2", stdin=whole), self.expected(whole, [0, 1]))
        self.assertGreater(len(not_closed), 50)
        for data in sample(not_closed, 8):
            run = self.bloomery("dedup", "-q", *EXACT, "--csv", "-f", "1,2", stdin=data, status=2)
            self.assertIn("quote is not closed", run.err)

    def test_records_span_chunks_of_input_and_come_out_whole(self) -> None:
        long = b'"' + b"line\n," * 200_000 + b'""end"'
        rows = [b'1,"a\nb"', b"2," + long, b'3,""', b"2,again", b'"1",c', b"4," + long]
        data = b"\n".join(rows)
        self.assertEqual(self.dedup("-f", 1, stdin=data), b"\n".join([rows[0], rows[1], rows[2], rows[5]]) + b"\n")
        self.assertEqual(self.dedup("-f", 2, stdin=data), b"\n".join([rows[0], rows[1], rows[2], rows[3], rows[4]]) + b"\n")
        process = self.start("dedup", "-q", *EXACT, "--csv", "-f", 1)
        for at in range(0, 2000, 7):
            process.stdin.write(data[at : at + 7])
            process.stdin.flush()
        out, _ = process.communicate(data[at + 7 :])
        self.assertEqual(out, self.dedup("-f", 1, stdin=data))

    def test_threads_do_not_change_the_result(self) -> None:
        data = b"".join(b'%d,"x\n""%d"\r\n' % (i % 5000, i) for i in range(60_000))
        for threads in 1, 4:
            self.assertEqual(self.dedup("-j", threads, "-f", 1, stdin=data), self.expected(data, [0]))

    def test_without_fields_the_key_is_the_record_without_its_end(self) -> None:
        self.assertEqual(self.dedup(stdin=b'a,"\n"\r\na,"\n"\nb\n'), b'a,"\n"\r\nb\n')

    def test_names_choose_columns_and_the_header_goes_out_once_and_first(self) -> None:
        self.write("a.csv", b'\xef\xbb\xbf"id","full, name"\r\n1,x\r\n2,y\r\n')
        self.write("b.csv", b"id,\"full, name\"\n3,x\n4,z")
        self.write("c.csv.gz", gzip.compress(b"id,\"full, name\"\n"))
        out = self.dedup("-f", '"full, name"', "a.csv", "c.csv.gz", "b.csv")
        self.assertEqual(out, b'"id","full, name"\r\n1,x\r\n2,y\r\n4,z\n')
        self.assertEqual(self.dedup("-f", "2", "--header", "b.csv"), b"id,\"full, name\"\n3,x\n4,z\n")
        self.assertEqual(self.dedup("-f", "id", "c.csv.gz"), b"id,\"full, name\"\n")

    def test_each_file_has_its_own_order_of_columns(self) -> None:
        self.write("a.csv", b"id,name\n1,x\n2,y\n")
        self.write("b.csv", b"name,other,id\nx,?,1\nz,?,2\n")
        self.bloomery("build", "-q", "-o", "f", *EXACT, "--csv", "-f", "id,name", "a.csv", "b.csv")
        found = self.bloomery("check", "f", stdin=b"1\x1fx\n2\x1fy\n2\x1fz\nid\x1fname\nname\x1fid\n").lines
        self.assertEqual(found, [b"1\x1fx", b"2\x1fy", b"2\x1fz"])

    def test_what_does_not_fit_the_columns_is_an_error(self) -> None:
        self.write("a.csv", b"id,name\n1,x\n2,y\n")
        self.write("b.csv", b"name,other,id\nx,?,1\nz,?,2\n")
        for arguments, stdin, says in (
            (["-f", "id", "a.csv", "b.csv"], b"", "columns of this CSV file differ from those"),
            (["-f", "mail"], b"id,name\n1,2\n", "unknown column.*one of id, name.*'mail'"),
            (["-f", "id"], b"id,id\n1,2\n", "several columns have this name"),
            (["-f", "1"], b'a,b\nc,"\nd,e\n', "standard input, line 2: .*quote is not closed"),
            (["-f", "1"], b'a\n"' + b"x\n" * (40 << 20), "standard input, line 2: a CSV record is longer than 64 MiB"),
        ):
            self.assertRegex(self.bloomery("dedup", "-q", *EXACT, "--csv", *arguments, stdin=stdin, status=2).err, says)

    def test_build_check_and_verify_know_the_header(self) -> None:
        table = b'id,name\n1,"a\nb"\n2,c\n3,d\n'
        self.write("t.csv", table)
        for options, stdin in (["--scheme", "guava"], table), (["t.csv"], b""), ([], table):
            built = self.bloomery("build", "--json", "-o", "f", "-p", "1e-9", "--csv", "-f", "name", *options, stdin=stdin, status=None).json
            self.assertEqual((built["keys"], built["capacity"]), (3, 3))
        out = self.bloomery("check", "--csv", "-f", "name", "f", stdin=b'name,x\nz,1\n"a\nb",2\n').out
        self.assertEqual(out, b'name,x\n"a\nb",2\n')
        result = self.bloomery("verify", "--json", "--queries", 1000, "--csv", "-f", "name", "f", "--present", "t.csv").json
        self.assertEqual((result["present"]["keys"], result["present"]["missing"]), (3, 0))
        self.assertEqual(self.bloomery("dedup", "-q", "--exact", "--csv", "-f", "name", stdin=table + b"4,c\n").out, table)

    def test_short_records_have_an_empty_key_and_are_counted(self) -> None:
        run = self.bloomery("dedup", "-q", *EXACT, "--csv", "-f", 2, stdin=b"a,b\nc\n\nd,\ne,b\n")
        self.assertEqual(run.out, b"a,b\nc\n")
        self.assertIn("2 records have no value for the key", run.err)


if __name__ == "__main__":
    unittest.main()
