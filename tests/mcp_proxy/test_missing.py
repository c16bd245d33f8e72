"""Hints for what a server does not find in its sandbox."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.missing import MISSING_LIMIT, Missing
from ironcurtain.sandbox.spec import Sandbox


class MissingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.server = self.top / "project/server"
        self.server.mkdir(parents=True)
        self.missing = Missing("mine", Sandbox(read=(str(self.server),)))

    def hint(self, line: str) -> str:
        return self.missing.hint(line) or ""

    def add(self, path: str) -> Path:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        return file

    def test_existing_file_outside_is_hinted_at_once(self) -> None:
        data = self.add("data")
        line = f"cannot open '{data}': No such file or directory; nor /nowhere, /usr/bin, {self.server}"
        self.assertIn(f'"sandbox": {{"read": ["{data}"]}}', self.hint(line))
        self.assertEqual(self.missing.last.count("mine"), 1)
        self.assertEqual(self.hint(line), "")

    def test_repository_that_git_names_is_not_proposed(self) -> None:
        file = self.add("other/.git/HEAD")
        self.assertEqual(self.hint(f"fatal: not a git repository: {file.parent}"), "")

    def test_package_of_node_is_found_above_the_server(self) -> None:
        self.add("project/node_modules/dep/package.json")
        self.add("project/node_modules/@mine/dep/package.json")
        for line in ("Error: Cannot find module 'dep/sub'", "Cannot find package '@mine/dep' imported from a.js"):
            missing = Missing("mine", Sandbox(read=(str(self.server),)))
            self.assertIn(f'{{"read": ["{self.top}/project/node_modules"]}}', missing.hint(line) or "")

    def test_module_of_python_is_found_above_the_server(self) -> None:
        self.add("project/one.py")
        self.add("project/two/__init__.py")
        self.assertIn(f'["{self.top}/project/one.py"]', self.hint("ModuleNotFoundError: No module named 'one'"))
        self.assertIn(f'["{self.top}/project/two"]', self.hint("/usr/bin/python3: No module named two.three"))

    def test_module_that_is_nowhere_around_asks_for_its_directory(self) -> None:
        said = self.hint("<internal>: cannot load such file -- json_of_ruby (LoadError)")
        self.assertIn("does not find json_of_ruby", said)
        self.assertIn('{"read": ["/DIRECTORY"]}', said)
        self.assertEqual(self.hint("cannot load such file -- json_of_ruby"), "")

    def test_module_in_the_sandbox_is_not_proposed(self) -> None:
        self.add("project/node_modules/dep/package.json")
        self.missing = Missing("mine", Sandbox(read=(str(self.server), str(self.top / "project/node_modules"))))
        self.assertIn("/DIRECTORY", self.hint("Cannot find module 'dep'"))

    def test_host_that_is_not_found_is_named_once(self) -> None:
        for line in (
            "Error: getaddrinfo EAI_AGAIN api.example.org",
            "curl: (6) Could not resolve host: api.example.org",
            "NameResolutionError: Failed to resolve 'api.example.org' ([Errno -3] Temporary failure)",
            'Get "https://api.example.org/v1": dial tcp: lookup api.example.org on 127.0.0.1:53: no such host',
            "  cause: Failed to fetch: `https://API.example.org/simple/mcp/`",
        ):
            missing = Missing("mine", Sandbox())
            self.assertIn('write "sandbox": {"network": ["api.example.org"]}', missing.hint(line) or "", line)
            self.assertIsNone(missing.hint(line))

    def test_what_is_no_host_is_not_proposed(self) -> None:
        for line in ("getaddrinfo ENOTFOUND localhost", 'dial tcp: lookup "]}, x', "Could not resolve host: a.b.*"):
            self.assertEqual(self.hint(line), "")

    def test_number_of_hints_is_limited(self) -> None:
        said = [self.hint(f"No module named m{number}") for number in range(MISSING_LIMIT + 5)]
        self.assertEqual(len([hint for hint in said if hint]), MISSING_LIMIT)

    @given(st.text())
    def test_any_line_is_read(self, line: str) -> None:
        self.missing.hint(f"Cannot find module '{line}'")
        self.missing.hint(f"No module named /{line}")
        self.missing.hint(f"getaddrinfo ENOTFOUND {line}")
