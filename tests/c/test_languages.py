"""The examples of other languages: each compiled and run, with the same output and the same file as the command."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

COMMAND = os.environ["BLOOMERY"]
SOURCE = os.environ["BLOOMERY_SOURCE"]
LIBRARY = os.environ["BLOOMERY_C"]  # libbloomery_c.so
EXAMPLES = os.path.join(SOURCE, "examples", "languages")
PRINTED = "3 keys, 2 new\nMadrid: maybe present\nBerlin: certainly absent\n"
JNA = "/usr/share/java/jna.jar"


class Languages(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.libraries = os.path.dirname(LIBRARY)
        with open(os.path.join(self.folder, "bloomery-c.pc"), "w", encoding="utf-8") as file:
            file.write(
                f"Name: bloomery-c\nDescription: as built\nVersion: 0\nCflags: -I{SOURCE}/include\nLibs: -L{self.libraries} -lbloomery_c\n"
            )
        self.environment = dict(
            os.environ, LD_LIBRARY_PATH=self.libraries, PKG_CONFIG_PATH=self.folder, GOCACHE=self.folder, GOFLAGS="-mod=mod", GO111MODULE="off"
        )

    def run_in_folder(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}")
        return done.stdout

    def want(self, program: str) -> str:
        path = shutil.which(program)
        if path is None:
            self.skipTest(f"{program} is not installed")
        return path

    def check_run(self, *command: str) -> None:
        self.assertEqual(self.run_in_folder(*command), PRINTED)
        with open(os.path.join(self.folder, "cities.bloom"), "rb") as file:
            saved = file.read()
        self.assertEqual(saved, self.file_of_the_command())

    def file_of_the_command(self) -> bytes:
        path = os.path.join(self.folder, "command.bloom")
        subprocess.run(
            [COMMAND, "build", "-q", "-n", "1000", "-p", "1%", "-o", path], input=b"Madrid\nBarcelona\nMadrid\n", check=True, stdout=subprocess.DEVNULL
        )
        with open(path, "rb") as file:
            return file.read()

    def compile_c(self, source: str) -> None:
        flags = self.run_in_folder("pkg-config", "--cflags", "--libs", "bloomery-c").split()
        self.run_in_folder("cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", "cities", source, *flags)

    def test_c(self) -> None:
        self.compile_c(os.path.join(EXAMPLES, "cities.c"))
        self.check_run("./cities")

    def test_the_program_in_the_documentation(self) -> None:
        with open(os.path.join(SOURCE, "docs", "everywhere.md"), encoding="utf-8") as file:
            ((program, printed),) = re.findall(r"^```c\n(.*?)^```\n\n```text\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
        source = os.path.join(self.folder, "program.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)

        self.compile_c(source)

        self.assertEqual(self.run_in_folder("./cities"), printed)

    def test_rust(self) -> None:
        self.run_in_folder(self.want("rustc"), "-o", "cities", os.path.join(EXAMPLES, "cities.rs"), "-L", self.libraries)
        self.check_run("./cities")

    def test_go(self) -> None:
        self.run_in_folder(self.want("go"), "build", "-o", "cities", os.path.join(EXAMPLES, "cities.go"))
        self.check_run("./cities")

    def test_java(self) -> None:
        java = self.want("java")
        if not os.path.exists(JNA):
            self.skipTest("libjna-java is not installed")
        self.check_run(java, f"-Djna.library.path={self.libraries}", "-cp", JNA, os.path.join(EXAMPLES, "Cities.java"))

    def test_every_example_is_tested_and_short(self) -> None:
        lines = {}
        for path in glob.glob(os.path.join(EXAMPLES, "*")):
            with open(path, encoding="utf-8") as file:
                lines[os.path.basename(path)] = len(file.readlines())
        lines.pop("README.md", None)
        self.assertEqual(sorted(lines), ["Cities.java", "cities.c", "cities.go", "cities.rs"])
        self.assertLessEqual(max(lines.values()), 40)


if __name__ == "__main__":
    unittest.main()
