// Writes the Parquet files of this folder and the answers of real readers for their Bloom filters.
//
//   mkdir /tmp/peers && cd /tmp/peers
//   npm install @duckdb/node-api@1.5.6-r.1 hyparquet@1.33.0 hyparquet-writer@0.17.0
//   node .../tests/golden/foreign/make_parquet.mjs     packages are found in the current folder
//
//   duckdb.parquet       written by DuckDB 1.5.6
//   hyparquet.parquet    written by hyparquet-writer 0.17.0
//   duckdb.answers       parquet_bloom_probe() of DuckDB for both files. The answers of hyparquet 1.33.0 for
//   hyparquet.answers    hyparquet.parquet are compared with those of DuckDB here.
//
// A line of an .answers file, with tabs between its fields:
//
//   column  prefix  first  step  count  suffix  digits
//
// Key i is prefix, the number first + i * step, suffix. Digit i has bit g set if row group g is not excluded.
//
// tests/formats/parquet_footer_test.cpp reads these files. Versions are fixed: other versions write other bytes.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = path.dirname(fileURLToPath(import.meta.url));
const modules = path.resolve("node_modules");
const { DuckDBInstance } = createRequire(path.join(modules, "any.js"))("@duckdb/node-api");
const importFrom = (file) => import(pathToFileURL(path.join(modules, file)));
const { parquetWriteFile } = await importFrom("hyparquet-writer/src/node.js");
const { parquetMetadata } = await importFrom("hyparquet/src/node.js");
const { readBloomFilter, sbbfContains, hashParquetValue } = await importFrom("hyparquet/src/bloom.js");

const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
const duckdb = await instance.connect();
const rowsOf = async (sql) => (await duckdb.runAndReadAll(sql)).getRowObjects();

// Row group g has the keys from 1000 * g on. Repetitions make DuckDB choose a dictionary, and so write a filter.
const duckdbFile = path.join(folder, "duckdb.parquet");
await duckdb.run(`
  COPY (
    SELECT 'město ' || (i % 150 + g * 1000) AS s,
           ((i % 120 + g * 1000) * 7919)::BIGINT AS b,
           (i % 100 + g * 1000 - 500)::INTEGER AS n,
           (i % 90 + g * 1000 + 0.25)::DOUBLE AS d,
           (i % 80 + g * 1000 + 0.5)::FLOAT AS f,
           (4000000000 + i % 70 + g * 1000)::UINTEGER AS u,
           (DATE '2020-01-01' + (i % 60)::INTEGER) AS day,
           CASE WHEN i % 3 = 0 THEN NULL ELSE i % 50 + g * 1000 END AS nulls,
           i % 2 = 0 AS without,
           {'inner': (i % 40 + g * 1000)::BIGINT, 'x.y': 'z' || (i % 5)} AS nested,
           ['tag' || (i % 7), 'tag' || (i % 9)] AS tags
    FROM (SELECT i, i // 2048 AS g FROM range(3 * 2048) r(i))
  ) TO '${duckdbFile}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19, ROW_GROUP_SIZE 2048,
                        WRITE_BLOOM_FILTER true, BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.01)`);

const hyparquetFile = path.join(folder, "hyparquet.parquet");
const numbers = Array.from({ length: 1000 }, (_, i) => i);
parquetWriteFile({
  filename: hyparquetFile,
  rowGroupSize: 400,
  columnData: [
    { name: "name", data: numbers.map((i) => `user${i}`), type: "STRING", bloomFilter: { fpp: 0.05 } },
    { name: "id", data: numbers.map((i) => BigInt(i) * 1000003n), type: "INT64", bloomFilter: { fpp: 0.01 } },
    { name: "small", data: numbers.map((i) => 3 * i - 100), type: "INT32", bloomFilter: { fpp: 0.1 } },
    { name: "ratio", data: numbers.map((i) => i + 0.5), type: "DOUBLE", bloomFilter: { fpp: 0.02 } },
    { name: "without", data: numbers.map((i) => i % 7), type: "INT32" },
  ],
});

// [column, prefix, first, step, count, suffix, SQL type]
const duckdbKeys = [
  ["s", "město ", 0, 1, 3500, "", "VARCHAR"],
  ["b", "", -7919, 7919, 3500, "", "BIGINT"],
  ["n", "", -1000, 1, 3500, "", "INTEGER"],
  ["d", "", 0, 1, 3500, ".25", "DOUBLE"],
  ["f", "", 0, 1, 3500, ".5", "FLOAT"],
  ["u", "", 3999999999, 1, 3500, "", "UINTEGER"],
  ["nulls", "", 0, 1, 3500, "", "BIGINT"],
  ["without", "", 0, 1, 2, "", "BOOLEAN"],
];
const hyparquetKeys = [
  ["name", "user", 0, 1, 3000, "", "VARCHAR"],
  ["id", "", 0, 1000003, 3000, "", "BIGINT"],
  ["small", "", -400, 1, 4000, "", "INTEGER"],
  ["ratio", "", 0, 1, 3000, ".5", "DOUBLE"],
  ["without", "", 0, 1, 10, "", "INTEGER"],
];

async function answersOf(file, keys) {
  const counted = { yes: 0, no: 0 };
  const lines = [];
  for (const [column, prefix, first, step, count, suffix, type] of keys) {
    let digits = "";
    for (let i = 0; i < count; ++i) {
      const key = `${prefix}${first + i * step}${suffix}`;
      const found = await rowsOf(
        `SELECT row_group_id AS g, bloom_filter_excludes AS no FROM parquet_bloom_probe('${file}', '${column}', '${key}'::${type})`,
      );
      const mask = found.reduce((bits, { g, no }) => bits + (no ? 0 : 2 ** Number(g)), 0);
      digits += mask;
      for (const { no } of found) ++counted[no ? "no" : "yes"];
    }
    lines.push([column, prefix, first, step, count, suffix, digits].join("\t"));
  }
  fs.writeFileSync(file.replace(".parquet", ".answers"), lines.join("\n") + "\n");
  console.log(path.basename(file), fs.statSync(file).size, "bytes,", counted);
  return lines;
}

await answersOf(duckdbFile, duckdbKeys);
const answers = await answersOf(hyparquetFile, hyparquetKeys);

// The other reader.
const bytes = fs.readFileSync(hyparquetFile);
const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const metadata = parquetMetadata(buffer);
let compared = 0;
for (const line of answers) {
  const [column, prefix, first, step, count, suffix, digits] = line.split("\t");
  const element = metadata.schema.find((one) => one.name === column);
  metadata.row_groups.forEach((group, g) => {
    const { bloom_filter_offset: offset } = group.columns.find((one) => one.meta_data.path_in_schema[0] === column).meta_data;
    if (offset === undefined) return;
    const { blocks } = readBloomFilter({ view: new DataView(buffer), offset: Number(offset) });
    for (let i = 0; i < Number(count); ++i) {
      const text = `${prefix}${Number(first) + i * Number(step)}${suffix}`;
      const value = element.type === "BYTE_ARRAY" ? text : element.type === "INT64" ? BigInt(text) : Number(text);
      assert.equal(sbbfContains(blocks, hashParquetValue(value, element)), (Number(digits[i]) & (1 << g)) !== 0);
      ++compared;
    }
  });
}
console.log(`hyparquet gives the same ${compared} answers as DuckDB`);
