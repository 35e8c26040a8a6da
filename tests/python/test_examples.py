"""The examples in the docstrings of the package and in its documentation, run by doctest; and a docstring for every public name."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import unittest

from package import SOURCE, PackageTest, bloomery

MODULES = ["bloomery", *(f"bloomery.{module.name}" for module in pkgutil.iter_modules(bloomery.__path__))]


class Docstrings(PackageTest):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def test_examples_give_the_results_that_they_show(self) -> None:
        attempted = 0
        for name in MODULES:
            module = importlib.import_module(name)
            result = doctest.testmod(module, extraglobs={"Filter": bloomery.Filter}, verbose=False)
            self.assertEqual(result.failed, 0, name)
            attempted += result.attempted
        self.assertGreater(attempted, 50)

    def test_documents_show_the_results_of_their_examples(self) -> None:
        for name in ("README.md", "docs/python.md"):
            blocks = re.findall(r"^```python\n(>>> .*?)^```$", (SOURCE / name).read_text(encoding="utf-8"), re.M | re.S)
            self.assertTrue(blocks, name)
            test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
            self.assertEqual(doctest.DocTestRunner(verbose=False).run(test).failed, 0, name)

    def test_every_public_name_has_a_docstring(self) -> None:
        for name in bloomery.__all__:
            value = getattr(bloomery, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            self.assertTrue(inspect.getdoc(value), name)
            members = vars(value).items() if inspect.isclass(value) and issubclass(value, bloomery.BaseFilter) else ()
            for member, function in members:
                if not member.startswith("_") and (inspect.isfunction(function) or isinstance(function, property)):
                    self.assertTrue(inspect.getdoc(function), f"{name}.{member}")


if __name__ == "__main__":
    unittest.main()
