"""The table of tools, its annotations, and calls where there is no desktop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import IronCurtainError
from ironcurtain.mcp_proxy.launch import OWN_SERVERS
from ironcurtain.policy.loading import default_annotations
from ironcurtain.senses.client import SensesWorker
from ironcurtain.servers.desktop.__main__ import main
from ironcurtain.servers.desktop.model import DesktopError
from ironcurtain.servers.desktop.status import PERMISSION_MISSING, UNSUPPORTED, account_problem, senses
from ironcurtain.servers.desktop.table import DEFINITIONS
from ironcurtain.servers.desktop.tools import DesktopTools

_HANDS = {"press", "set_value", "select", "click", "drag", "scroll", "key", "type"}


class TableTests(SynchronousTestCase):
    def test_every_argument_is_annotated(self) -> None:
        known = {tool.name: set(tool.args) for tool in default_annotations().servers["desktop"].tools}
        defined = {each["name"]: set(each["inputSchema"]["properties"]) for each in DEFINITIONS}
        self.assertEqual(defined, known)

    def test_what_acts_names_its_application_and_says_whether_it_runs_commands(self) -> None:
        tools = {each["name"]: each["inputSchema"] for each in DEFINITIONS}
        for name in _HANDS:
            self.assertIn("app", tools[name]["required"], name)
            self.assertIn("terminal", tools[name]["properties"], name)

    def test_only_what_looks_says_that_it_changes_nothing(self) -> None:
        reads = {each["name"] for each in DEFINITIONS if each["annotations"]["readOnlyHint"]}
        looking = {"status", "windows", "screenshot", "tree", "read_text", "clipboard_read", "listen"}
        self.assertEqual(reads, looking)


class NoDesktopTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.tools = DesktopTools({"PATH": os.environ["PATH"]}, SensesWorker())

    def test_with_a_bus_that_is_lost_there_are_neither_pictures_nor_clicks(self) -> None:
        environ = {"PATH": os.environ["PATH"], "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent/bus"}
        tools = DesktopTools(environ, SensesWorker())
        with self.assertRaisesRegex(DesktopError, "nobody tells where passwords are, so no picture is taken"):
            tools.call("screenshot", {"app": "screen"})
        at = {"app": "a", "window": "1", "bounds": [0, 0, 9, 9], "point": [1, 1]}
        for tool, given in (("click", at), ("press", {"app": "a", "ref": "1.1/2", "role": "r", "name": "n"})):
            with self.assertRaisesRegex(DesktopError, "D-Bus cannot be reached"):
                tools.call(tool, given)

    def test_every_call_is_refused_with_its_reason(self) -> None:
        element = {"app": "a", "ref": "1.1/2", "role": "r", "name": "n"}
        at = {"app": "a", "window": "1", "bounds": [0, 0, 9, 9], "point": [1, 1]}
        calls: dict[str, dict[str, Any]] = {
            "windows": {}, "screenshot": {"app": "screen"}, "tree": {"app": "a"}, "read_text": {"app": "a"},
            "press": element, "select": element, "set_value": {**element, "value": "x"}, "click": at,
            "drag": {**at, "to": [2, 2]}, "scroll": at, "key": {"app": "a", "window": "1", "keys": "a"},
            "type": {"app": "a", "window": "1", "text": "x"}, "open": {"app": "mousepad"}, "clipboard_read": {},
            "window": {"app": "a", "window": "1", "title": "", "action": "close"}, "clipboard_write": {"text": "x"},
            "notify": {"title": "x"}, "listen": {"source": "system"}, "speak": {"text": "x"},
        }  # fmt: skip
        self.assertEqual({*calls, "status"}, {each["name"] for each in DEFINITIONS})
        for tool, given in calls.items():
            with self.assertRaises(IronCurtainError) as caught:
                self.tools.call(tool, given)
            self.assertRegex(str(caught.exception), "no desktop|no session bus|no sound server|is installed", tool)

    def test_every_sense_says_what_it_lacks(self) -> None:
        found = senses({"PATH": os.environ["PATH"]}, SensesWorker())
        self.assertEqual({each.state for each in found}, {UNSUPPORTED})
        self.assertEqual([each.name for each in found if not each.lacks], [])
        (answer,) = self.tools.call("status", {})
        self.assertIn("unsupported: there is no desktop", json.loads(answer["text"])["windows"])

    def test_desktop_of_another_account_says_so(self) -> None:
        owner = os.stat("/").st_uid
        self.assertEqual(account_problem({"XDG_RUNTIME_DIR": "/"}, owner), "")
        self.assertEqual(account_problem({"XDG_RUNTIME_DIR": "/nonexistent"}, owner + 1), "")
        self.assertEqual(account_problem({}, owner + 1), "")
        problem = account_problem({"XDG_RUNTIME_DIR": "/"}, owner + 1)
        self.assertIn(f"belongs to the account {owner}: run IronCurtain as that", problem)
        if os.geteuid() != owner:
            found = senses({"XDG_RUNTIME_DIR": "/"}, SensesWorker())
            self.assertEqual({(each.state, each.lacks) for each in found}, {(PERMISSION_MISSING, problem)})

    def test_arguments_are_checked(self) -> None:
        for tool, given in (
            ("click", {"app": "a", "window": "1", "bounds": [1], "point": [1, 2]}),
            ("click", {"app": "a", "window": "1", "bounds": [1, 2, 3, 4], "point": []}),
            ("window", {"app": "a", "window": "1", "title": "", "action": "move"}),
            ("click", {"app": "a", "window": "1", "bounds": [1, 2, 3, 1e400], "point": [1, 2]}),
            ("window", {"app": "a", "window": "1", "title": "", "action": "move", "bounds": [2**40, 0, 1, 1]}),
            ("tree", {"app": "a", "depth": float("nan")}),
            ("listen", {"source": "phone"}),
            ("tree", {"app": "screen"}),
            ("press", {"app": "a"}),
            ("type", {"app": "a", "window": "1", "text": 7}),
        ):
            with self.assertRaises(IronCurtainError):
                self.tools.call(tool, given)


class MainTests(SynchronousTestCase):
    def test_wrong_arguments_end_it(self) -> None:
        self.assertEqual(main(["x"]), 64)
        self.assertEqual(main(["--account=x"]), 64)

    def test_without_the_extra_it_runs_and_says_what_is_missing(self) -> None:
        script = (
            "import sys; sys.modules['dbus_fast'] = sys.modules['Xlib'] = None;"
            "from ironcurtain.servers.desktop.__main__ import main; main([])"
        )
        lines = [
            {"method": "initialize", "params": {}},
            {"method": "tools/call", "params": {"name": "status"}},
            {"method": "tools/call", "params": {"name": "windows"}},
        ]
        given = "".join(json.dumps({"jsonrpc": "2.0", "id": 1, **line}) + "\n" for line in lines)
        environ = {"PATH": os.environ["PATH"], "DISPLAY": ":1", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"}
        done = subprocess.run([sys.executable, "-c", script], input=given, env=environ, capture_output=True, text=True)
        _, status, windows = map(json.loads, done.stdout.splitlines())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        why = "the extra is not installed: pip install 'ironcurtain[desktop]'"
        self.assertEqual(windows["result"]["content"][0]["text"], why)
        told = json.loads(status["result"]["content"][0]["text"])
        for sense in ("windows", "tree, press, set_value, select", "notify"):
            self.assertEqual(told[sense], f"unsupported: {why}")

    def test_the_product_starts_this_module(self) -> None:
        self.assertEqual(OWN_SERVERS[2], ("-I", "-m", "ironcurtain.servers.desktop"))
