"""The filter files of other systems, with these systems themselves: they read what bloomery writes, and answer alike."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support import CommandTest, text
from test_formats import HERE, OTHERS, SOURCE, recorded

PEERS = SOURCE / "tests/peers"
BUILD = Path(os.environ["BLOOMERY_BUILD"])
GUAVA = "/usr/share/java/guava.jar:/usr/share/java/failureaccess.jar"


def is_utf8(key: bytes) -> bool:
    return key.decode(errors="replace").encode() == key


def install_npm_packages(folder: Path) -> bool:
    packages = {"bloom-filters": "3.0.4", "bloomfilter": "1.1.0"}
    if shutil.which("npm") is None or shutil.which("node") is None:
        return False
    if all((folder / "node_modules" / name).exists() for name in packages):
        return True
    command = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    try:
        return subprocess.run([*command, *(f"{name}@{version}" for name, version in packages.items())], timeout=120).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Leveldb(CommandTest):
    """The real LevelDB reads what bloomery writes, and the other way round."""

    def setUp(self) -> None:
        super().setUp()
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None or not os.path.exists("/usr/include/leveldb/filter_policy.h"):
            print("SKIP peer LevelDB (libleveldb-dev, g++) is not installed")
            self.skipTest("SKIP peer LevelDB (libleveldb-dev, g++) is not installed")
        subprocess.run([compiler, "-std=c++20", "-o", self.path("leveldb"), str(PEERS / "leveldb.cpp"), "-lleveldb"], check=True)

    def leveldb(self, *arguments: str, stdin: bytes) -> bytes:
        return subprocess.run([self.path("leveldb"), *arguments], input=stdin, stdout=subprocess.PIPE, check=True, cwd=self.folder).stdout

    def found(self, *arguments: str) -> bytes:
        answers = self.leveldb(*arguments, stdin=text(HERE + OTHERS)).split()
        return text(key for key, answer in zip(HERE + OTHERS, answers, strict=True) if answer == b"1")

    def test_leveldb_answers_as_bloomery(self) -> None:
        self.make_filter("own", HERE, "--scheme", "leveldb", "-n", 400, "-p", "2%")
        self.bloomery("export", "-q", "own", "--to", "leveldb", "-o", "theirs")

        self.assertEqual(self.found("match", "theirs"), self.bloomery("check", "own", stdin=text(HERE + OTHERS)).out)

    def test_filters_are_the_same_bytes(self) -> None:
        for count, bits_per_key in (1, 10), (2, 10), (10, 1), (100, 5), (303, 15), (303, 60), (20_000, 10):
            with self.subTest(count=count, bits_per_key=bits_per_key):
                some = (HERE + OTHERS)[:count]
                self.leveldb("filter", "theirs", str(bits_per_key), stdin=text(some))
                bits, probes = 8 * len(self.read("theirs")) - 8, self.read("theirs")[-1]
                self.make_filter("own", some, "--scheme", "leveldb", "-m", bits, "-k", probes, "-n", count)

                back = f"{count}-{bits_per_key}"  # a new name: a file of this format is not recognized as a filter
                self.bloomery("export", "-q", "own", "--to", "leveldb", "-o", back)

                self.assertEqual(self.read(back), self.read("theirs"))

    def test_tables_of_databases_of_any_order_miss_no_key(self) -> None:
        for order in "bytewise", "reverse":
            for count in 10, 300, 5_000:
                name = f"{order}-{count}"
                with self.subTest(name):
                    some = (HERE + OTHERS)[:count]
                    self.leveldb("database", name, order, stdin=text(some))
                    (table,) = (file for file in os.listdir(self.path(name)) if file.endswith(".ldb"))

                    self.assertEqual(self.bloomery("check", f"{name}/{table}", stdin=text(some)).out, text(some))

    def test_tables_of_all_sizes_answer_as_leveldb(self) -> None:
        for name in "CURRENT", "MANIFEST-000002":  # of a database with LevelDB's own order
            self.write(name, recorded(f"leveldb_bytewise/{name}"))
        for count in 1, 20, 300, 5_000:
            for method in "none", "snappy":
                with self.subTest(count=count, method=method):
                    self.leveldb("table", "theirs", "10", method, stdin=text([*(HERE + OTHERS)[:count], b"key-0", b"zz"]))

                    self.assertEqual(self.found("get", "theirs"), self.bloomery("check", "theirs", stdin=text(HERE + OTHERS)).out)


class Guava(CommandTest):
    """The real Guava reads what bloomery writes."""

    def setUp(self) -> None:
        super().setUp()
        if not os.path.exists("/usr/share/java/guava.jar") or shutil.which("javac") is None:
            print("SKIP peer Guava (libguava-java, default-jdk-headless) is not installed")
            self.skipTest("SKIP peer Guava (libguava-java, default-jdk-headless) is not installed")

    def guava(self, *arguments: str, stdin: bytes) -> bytes:
        command = ["java", "-cp", GUAVA, str(PEERS / "GuavaFile.java"), *arguments]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, cwd=self.folder).stdout

    def test_guava_answers_as_bloomery(self) -> None:
        for scheme in "guava", "guava32":
            with self.subTest(scheme):
                self.make_filter("own", HERE, "--scheme", scheme, "-n", 400, "-p", "2%")
                self.bloomery("export", "-q", "own", "--to", "guava", "-o", "theirs")

                answers = self.guava("check", "theirs", stdin=text(HERE + OTHERS))

                found = [key for key, answer in zip(HERE + OTHERS, answers.split(), strict=True) if answer == b"1"]
                self.assertEqual(text(found), self.bloomery("check", "own", stdin=text(HERE + OTHERS)).out)


class Dcso(CommandTest):
    """The real command of DCSO bloom reads what bloomery writes, and the other way round."""

    def setUp(self) -> None:
        super().setUp()
        if shutil.which("bloom") is None:
            print("SKIP peer DCSO bloom (golang-github-dcso-bloom-cli) is not installed")
            self.skipTest("SKIP peer DCSO bloom (golang-github-dcso-bloom-cli) is not installed")

    def bloom(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return subprocess.run(["bloom", *arguments], input=stdin, stdout=subprocess.PIPE, check=True, cwd=self.folder).stdout

    def test_bloom_answers_as_bloomery(self) -> None:
        self.make_filter("own", HERE, "--scheme", "dcso", "-n", 400, "-p", "2%")
        self.bloomery("export", "-q", "own", "--to", "dcso", "-o", "theirs")

        found = self.bloom("check", "theirs", stdin=text(HERE + OTHERS))

        self.assertEqual(found, self.bloomery("check", "own", stdin=text(HERE + OTHERS)).out)
        shown = self.bloom("show", "theirs").decode()
        self.assertIn("Capacity:\t\t400", shown)
        self.assertIn("2.00e-02", shown)
        self.assertIn(f"Elements present:\t{len(HERE)}", shown)

    def test_a_filter_goes_back_and_forth(self) -> None:
        self.bloom("create", "-n", "1000", "-p", "0.001", "theirs")
        self.bloom("insert", "theirs", stdin=text(HERE))
        self.bloomery("import", "-q", "theirs", "-o", "own")
        self.bloomery("add", "-q", "own", stdin=b"Madrid\n")
        self.bloomery("export", "-q", "own", "--to", "dcso", "-o", "theirs")

        self.bloom("insert", "theirs", stdin=b"Barcelona\n")

        self.assertEqual(self.bloom("check", "theirs", stdin=b"Madrid\nParis\nBarcelona\n"), b"Madrid\nBarcelona\n")
        self.assertEqual(self.bloomery("check", "theirs", stdin=b"Madrid\nParis\nBarcelona\n").out, b"Madrid\nBarcelona\n")


class BitsAndBlooms(CommandTest):
    """The real bits-and-blooms reads what bloomery writes."""

    def test_bits_and_blooms_answers_as_bloomery(self) -> None:
        if shutil.which("go") is None or not os.path.isdir("/usr/share/gocode/src/github.com/bits-and-blooms/bloom"):
            print("SKIP peer bits-and-blooms (golang-go, golang-github-willf-bloom-dev) is not installed")
            self.skipTest("SKIP peer bits-and-blooms (golang-go, golang-github-willf-bloom-dev) is not installed")
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": os.path.join(self.folder, "cache")}
        subprocess.run(["go", "build", "-o", self.path("go"), str(PEERS / "bits_and_blooms.go")], check=True, env=environment)
        self.make_filter("own", HERE, "--scheme", "bits_and_blooms", "-n", 400, "-p", "2%")
        for form, name in ("bits_and_blooms", "theirs"), ("bits_and_blooms_json", "theirs.json"):
            with self.subTest(form):
                self.bloomery("export", "-q", "own", "--to", form, "-o", name)

                checked = subprocess.run([self.path("go"), "check", self.path(name)], input=text(HERE + OTHERS), stdout=subprocess.PIPE, check=True)

                found = [key for key, answer in zip(HERE + OTHERS, checked.stdout.split(), strict=True) if answer == b"1"]
                self.assertEqual(text(found), self.bloomery("check", "own", stdin=text(HERE + OTHERS)).out)


class Npm(CommandTest):
    """The real packages bloom-filters and bloomfilter read what bloomery writes, and the other way round."""

    PACKAGES = {"bloom_filters": "bloom-filters", "bloomfilter_js": "bloomfilter"}

    def setUp(self) -> None:
        super().setUp()
        self.modules = BUILD / "npm/node_modules"
        if not install_npm_packages(self.modules.parent):
            print("SKIP peer npm packages bloom-filters and bloomfilter: npm or node is missing, or npm cannot install them")
            self.skipTest("SKIP peer npm packages bloom-filters and bloomfilter: npm or node is missing, or npm cannot install them")

    def npm(self, *arguments: object, stdin: bytes) -> bytes:
        command = ["node", str(PEERS / "npm_filters.cjs"), *map(str, arguments)]
        environment = {**os.environ, "NODE_PATH": str(self.modules)}
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, cwd=self.folder, env=environment).stdout

    # With keys of all lengths and planes, and invalid UTF-8.
    def keys_of_all_kinds(self) -> list[bytes]:
        characters = ["a", "é", "\u4e00", "\U0001f600"]
        mixed = ["".join(characters[(i + j) % 4] for j in range(i)).encode() for i in range(100)]
        return HERE + mixed + [b"\x80", b"\xc3", b"\xed\xa0\x80 surrogate", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80"]

    def test_the_packages_answer_as_bloomery(self) -> None:
        for scheme, package in self.PACKAGES.items():
            valid = [key for key in self.keys_of_all_kinds() if scheme == "bloomfilter_js" or is_utf8(key)]
            with self.subTest(scheme):
                self.make_filter("own", valid, "--scheme", scheme, "-n", 600, "-p", "2%")
                self.bloomery("export", "-q", "own", "--to", scheme, "-o", "theirs")

                answers = self.npm("check", "theirs", stdin=text(valid + OTHERS))

                found = [key for key, answer in zip(valid + OTHERS, answers.split(), strict=True) if answer == b"1"]
                self.assertEqual(text(found), self.bloomery("check", "own", stdin=text(valid + OTHERS)).out)
                self.assertEqual(found[: len(valid)], valid)
                # The package itself writes the same file from the same keys.
                self.npm("write", package, "by_package", 600, 0.02, stdin=text(valid))
                self.assertEqual(self.read("by_package"), self.read("theirs"))

    def test_a_filter_goes_back_and_forth(self) -> None:
        for scheme, package in self.PACKAGES.items():
            for seed in [[], [0], [5], [2**53 - 2]] if scheme == "bloom_filters" else [[]]:
                with self.subTest(scheme, seed=seed):
                    self.npm("write", package, "theirs", 400, 0.0001, *seed, stdin=text(HERE))
                    self.bloomery("import", "-q", "theirs", "-o", "own")
                    self.bloomery("add", "-q", "own", stdin=b"Madrid\n")
                    self.bloomery("export", "-q", "own", "--to", scheme, "-o", "theirs")

                    self.npm("rewrite", "theirs", stdin=b"Barcelona\n")

                    some = [b"Madrid", b"Paris", b"Barcelona", *HERE]
                    expected = text(key for key in some if key != b"Paris")
                    self.assertEqual(self.bloomery("check", "theirs", stdin=text(some)).out, expected)
                    answers = self.npm("check", "theirs", stdin=text(some)).split()
                    self.assertEqual(text(key for key, answer in zip(some, answers, strict=True) if answer == b"1"), expected)

    def test_sizes_are_those_of_the_packages(self) -> None:
        wanted = [(n, p) for n in (1, 2, 3, 7, 10, 100, 999, 12_345, 1_000_000) for p in (0.9, 0.5, 0.25, 0.1, 0.03, 0.01, 2**-10, 1e-6, 1e-12)]
        lines = self.npm("sizes", stdin=text(f"{n} {p!r}".encode() for n, p in wanted)).decode().splitlines()
        for (n, p), line in zip(wanted, lines, strict=True):
            sizes = list(map(int, line.split()[2:]))
            for scheme, size in zip(self.PACKAGES, (sizes[:2], sizes[2:]), strict=True):
                plan = self.bloomery("plan", "--json", "--scheme", scheme, "-n", n, "-p", repr(p), status=None).json
                self.assertEqual([plan["bits"], plan["probes"]], size, (scheme, n, p))


if __name__ == "__main__":
    unittest.main()
