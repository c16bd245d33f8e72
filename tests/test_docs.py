"""The documentation tells the truth about the commands that it shows."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests import docs_commands
from tests.docs_commands import TOP, Block, WrongCommand

RUN_LIMIT = 300
"""Seconds that one shown command may take (the demo is the longest, with about ten)."""

SHELLS = frozenset(("bash", "fish", "sh", "shell", "zsh"))

MADE = frozenset(("build", "dist", "_trial_temp"))
"""Directories at the top that tools make."""

DOCS = TOP / "docs"


def _other_home(case: SynchronousTestCase) -> None:
    """Let the programs' parsers, which look at the environment, find a home that is not the developer's."""
    directory = tempfile.mkdtemp()
    case.addCleanup(shutil.rmtree, directory)
    case.patch(os, "environ", {**os.environ, "IRONCURTAIN_HOME": f"{directory}/home"})


def _page(case: SynchronousTestCase, name: str, text: str) -> list[Block]:
    directory = Path(tempfile.mkdtemp())
    case.addCleanup(shutil.rmtree, directory)
    (directory / name).write_text(text)
    return list(docs_commands.blocks(directory / name))


RESTRUCTURED = """\
.. shown: run 69

.. code-block:: console
   :caption: A caption

   $ a \\
     b
   out

   $ c

Text
"""

MARKDOWN = """\
<!-- shown: run -->
```console
$ a
```

```toml
x = 1
```

- item
  ```console
  $ b
  ```
"""


class BlockTests(SynchronousTestCase):
    """Finding blocks and commands on a page."""

    def test_restructured_text(self) -> None:
        [block] = _page(self, "x.rst", RESTRUCTURED)
        self.assertEqual((block.language, block.status, block.place), ("console", 69, "x.rst:3"))
        self.assertEqual(block.commands(), [("a b", ["out"]), ("c", [])])

    def test_markdown(self) -> None:
        first, second, third = _page(self, "x.md", MARKDOWN)
        self.assertEqual((first.status, first.commands()), (0, [("a", [])]))
        self.assertEqual((second.status, second.language, second.commands()), (None, "toml", []))
        self.assertEqual(third.commands(), [("b", [])])

    def test_the_mark_is_for_the_very_next_block(self) -> None:
        [block] = _page(self, "x.rst", ".. shown: run\n\nText.\n\n.. code-block:: console\n\n   $ a\n")
        self.assertIsNone(block.status)


class ParserTests(SynchronousTestCase):
    """A wrong command is found, a right one passes, and those of others are let be."""

    def setUp(self) -> None:
        _other_home(self)

    def test_right_ones(self) -> None:
        for line in (
            "cd x && CI=1 make test >log 2>&1",
            'make test TOX="-e tests"',
            "ssh -p 2222 localhost",
            "ssh -t -p 2222 localhost attach 1",
            "docker run --nonsense",
            "twistd -n ironcurtain",
            "twistd --pidfile= ironcurtain --help",
        ):
            docs_commands.check(line)

    def test_wrong_ones(self) -> None:
        for line in (
            "make tset",
            "true; make tset",
            "echo y | make tset",
            "X=1 sudo make tset",
            "ssh -p 2222 localhost aprove 1",
            "ssh -p 2222",
            "twistd --nonsense",
            "twistd nonsense",
            "twistd ironcurtain --nonsense",
        ):
            with self.assertRaises(WrongCommand, msg=line):
                docs_commands.check(line)

    def test_our_own_command(self) -> None:
        docs_commands.check("ironcurtain --version")
        for line in ("ironcurtain --nonsense", "ironcurtain nonsense", "yes | ironcurtain nonsense"):
            with self.assertRaises(WrongCommand, msg=line):
                docs_commands.check(line)

    def test_output(self) -> None:
        printed = "one\ntwo 2\nthree\n"
        self.assertTrue(docs_commands.matches(["one", "two ..."], printed))
        self.assertTrue(docs_commands.matches(["one", "three"], printed))
        self.assertFalse(docs_commands.matches(["two", "three"], printed))
        self.assertFalse(docs_commands.matches(["three", "one"], printed))


class ShownCommandTests(SynchronousTestCase):
    """Every command on every page."""

    def setUp(self) -> None:
        _other_home(self)
        self.blocks = [block for page in docs_commands.pages() for block in docs_commands.blocks(page)]

    def test_commands_stand_in_console_blocks(self) -> None:
        wrong = [block.place for block in self.blocks if block.language in SHELLS]
        self.assertEqual(wrong, [], "use a console block with `$ ` before each command")

    def test_every_shown_command_is_one_that_exists(self) -> None:
        wrong: list[str] = []
        shown = 0
        for block in self.blocks:
            for command, _ in block.commands() if block.language == "console" else ():
                shown += 1
                try:
                    docs_commands.check(command)
                except WrongCommand as e:
                    wrong.append(f"{block.place}: {command}\n    {e}")
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertGreater(shown, 2, "no commands were found on any page")

    def test_marked_blocks_do_what_they_show(self) -> None:
        wrong = [problem for block in self.blocks if block.status is not None for problem in self._problems(block)]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def _problems(self, block: Block) -> list[str]:
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        commands = block.commands()
        wanted = [0] * (len(commands) - 1) + [block.status]
        problems: list[str] = []
        for (command, shown), status in zip(commands, wanted, strict=True):
            got, printed = _shell(command, directory)
            if got != status:
                problems.append(f"{block.place}: {command}\n    status {got}, not {status}:\n{printed}")
            elif not docs_commands.matches(shown, printed):
                problems.append(f"{block.place}: {command}\n    does not print what is shown, but:\n{printed}")
        return problems


def _shell(command: str, directory: str) -> tuple[int, str]:
    """
    Run one command line as a reader would, with a home of its own and nothing of the developer's environment.

    :returns: its exit status, and what it printed on both streams.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    environ = {"PATH": path, "HOME": directory, "IRONCURTAIN_HOME": f"{directory}/home", "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=directory,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=RUN_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        printed += f"\n[ended after {RUN_LIMIT} s]"
    return process.returncode, printed


def _directories() -> list[str]:
    """:returns: every directory of the source that a reader meets first: the top level, and the packages."""
    at_top = [entry.name for entry in TOP.iterdir() if entry.is_dir() and "." not in entry.name]
    packages = [f"ironcurtain/{path.parent.name}" for path in (TOP / "ironcurtain").glob("*/__init__.py")]
    return sorted({*at_top, *packages} - MADE)


def _texts() -> list[Path]:
    """:returns: the files that may name pages of the documentation."""
    below = [path for name in ("docs", "ironcurtain", "tests") for path in (TOP / name).rglob("*")]
    return [*TOP.glob("*.md"), *TOP.glob("*.rst"), *(p for p in below if p.suffix in (".py", ".rst", ".yaml", ".toml"))]


class StructureTests(SynchronousTestCase):
    """Pages, directories and figures that exist are named, and those that are named exist."""

    def test_each_directory_is_on_the_page_about_the_architecture(self) -> None:
        page = (DOCS / "explanation" / "architecture.rst").read_text()
        self.assertEqual([name for name in _directories() if f"``{name}/``" not in page], [])

    def test_each_package_is_in_the_figure_of_the_architecture(self) -> None:
        named = re.findall(r">(\w+)</text>", (DOCS / "figures" / "architecture.svg").read_text())
        packages = {name.removeprefix("ironcurtain/") for name in _directories() if "/" in name}
        self.assertEqual(sorted(packages - {*named}), [])

    def test_pages_that_are_named_exist(self) -> None:
        missing = [
            f"{path.relative_to(TOP)}: {name}"
            for path in _texts()
            for name in re.findall(r"\bdocs/[\w/-]+\.(?:rst|svg|toml|yaml)\b", path.read_text())
            if not (TOP / name).is_file()
        ]
        self.assertEqual(missing, [])

    def test_links_between_files_lead_somewhere(self) -> None:
        missing = [
            f"{page.name}: {link}"
            for page in TOP.glob("*.md")
            for link in re.findall(r"\]\(([^):#\s]+)", page.read_text())
            if not (page.parent / link).exists()
        ]
        self.assertEqual(missing, [])

    def test_each_page_is_in_the_table_of_contents(self) -> None:
        contents = re.findall(r"^   ([\w/-]+)$", (DOCS / "index.rst").read_text(), re.MULTILINE)
        pages = {str(p.relative_to(DOCS).with_suffix("")) for p in docs_commands.pages() if p.is_relative_to(DOCS)}
        self.assertEqual(sorted(pages - {*contents}), ["index"])

    def test_figures_are_shown_and_described(self) -> None:
        shown = {
            (page.parent / path).resolve()
            for page in docs_commands.pages()
            for paths in re.findall(r"\.\. figure:: (\S+)\n +:alt: |!\[[^]]+\]\((\S+)\)", page.read_text())
            for path in paths
        }
        figures = sorted((DOCS / "figures").glob("*.svg"))
        self.assertTrue(figures)
        self.assertEqual([figure.name for figure in figures if figure not in shown], [])
