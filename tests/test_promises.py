"""Each promise has tests that exist and a page that exists. The format is described on the page itself."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

TOP = Path(__file__).parent.parent

_LITERAL = re.compile(r"``(.+?)``")
_CELL = re.compile(r" {3}(?P<first>\* - |  - )(?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class Promise:
    """One row of the table."""

    identifier: str
    text: str
    tests: tuple[str, ...]
    pages: tuple[str, ...]


def promises(text: str) -> list[Promise]:
    """:returns: the rows of the first list-table in a page, without its header."""
    rows: list[list[str]] = []
    for line in text.partition(".. list-table::")[2].splitlines()[1:]:
        if line and not line.startswith("   "):
            break
        if cell := _CELL.match(line):
            if cell["first"] == "* - ":
                rows.append([])
            rows[-1].append(cell["text"])
        elif rows and line.strip():
            rows[-1][-1] += " " + line.strip()
    return [
        Promise(i, t, tuple(_LITERAL.findall(tests)), tuple(_LITERAL.findall(page))) for i, t, tests, page in rows[1:]
    ]


@cache
def _classes(path: str) -> dict[str, set[str]]:
    """:returns: the test classes of a file, each with its test methods."""
    tree = ast.parse((TOP / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name: {item.name for item in node.body if isinstance(item, functions) and item.name.startswith("test_")}
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def has_test(identifier: str) -> bool:
    """:returns: whether ``PATH::Class::method`` or ``PATH::Class`` names a test, or a class that has some."""
    path, _, rest = identifier.partition("::")
    name, _, method = rest.partition("::")
    if not (TOP / path).is_file():
        return False
    methods = _classes(path).get(name, set())
    return method in methods if method else bool(methods)


def anchors(text: str) -> set[str]:
    """:returns: the names of a page's sections and explicit targets, as links write them."""
    titles = re.findall(r"^(\S.*)\n([=\-~^\"'`+*#])\2{2,}\s*$", text, re.MULTILINE)
    names = [title for title, _ in titles] + re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") for name in names}
    return made | set(re.findall(r"^\.\. _([\w-]+):", text, re.MULTILINE)) | set(re.findall(r'<a id="([\w-]+)"', text))


def has_page(reference: str) -> bool:
    """:returns: whether ``FILE#SECTION`` names a section of a page."""
    path, _, anchor = reference.partition("#")
    return (TOP / path).is_file() and anchor in anchors((TOP / path).read_text())


class PromiseTests(SynchronousTestCase):
    """The table of promises."""

    def setUp(self) -> None:
        self.promises = promises((TOP / "docs" / "explanation" / "promises.rst").read_text())

    def test_there_are_rows_and_their_ids_are_unique(self) -> None:
        identifiers = [promise.identifier for promise in self.promises]
        self.assertTrue(identifiers)
        self.assertEqual(sorted(set(identifiers)), sorted(identifiers))
        self.assertEqual([i for i in identifiers if not re.fullmatch(r"[A-Z]\d+", i)], [])

    def test_every_row_is_whole(self) -> None:
        incomplete = [p.identifier for p in self.promises if not (p.text.strip() and p.tests and p.pages)]
        self.assertEqual(incomplete, [])

    def test_the_tests_exist(self) -> None:
        missing = [f"{p.identifier}: {test}" for p in self.promises for test in p.tests if not has_test(test)]
        self.assertEqual(missing, [])

    def test_the_pages_exist(self) -> None:
        missing = [f"{p.identifier}: {page}" for p in self.promises for page in p.pages if not has_page(page)]
        self.assertEqual(missing, [])


TABLE = """\
Title
=====

.. list-table::
   :header-rows: 1

   * - Id
     - Promise
     - Tests
     - Page
   * - S1
     - Some
       words
     - ``a::B::c``
       ``a::D``
     - ``x.rst#y``

After
"""


class FormatTests(SynchronousTestCase):
    """What the functions above take for a row, a test and a section."""

    def test_rows(self) -> None:
        self.assertEqual(promises(TABLE), [Promise("S1", "Some words", ("a::B::c", "a::D"), ("x.rst#y",))])

    def test_tests(self) -> None:
        here = "tests/test_promises.py"
        self.assertTrue(has_test(f"{here}::FormatTests"))
        self.assertTrue(has_test(f"{here}::FormatTests::test_tests"))
        for wrong in (
            f"{here}::FormatTests::test_no",
            f"{here}::Promise",
            f"{here}::No",
            here,
            "tests/no.py::FormatTests",
        ):
            self.assertFalse(has_test(wrong), wrong)

    def test_sections(self) -> None:
        text = "Big Title!\n==========\n\n.. _own-name:\n\nSub-title (two)\n---------------\n\ntext\n\n## Mark *down*\n"
        self.assertEqual(anchors(text), {"big-title", "own-name", "sub-title-two", "mark-down"})
        self.assertTrue(has_page("CONTRIBUTING.rst#checks"))
        self.assertFalse(has_page("CONTRIBUTING.rst#no-such-section"))
        self.assertFalse(has_page("no-such-page.rst#checks"))
