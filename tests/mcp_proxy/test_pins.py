"""What counts of the definitions of tools, and the files in which it is kept."""

from __future__ import annotations

import json
import stat
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, NotFound, StaleDecision
from ironcurtain.mcp_proxy import pins as pin_files
from ironcurtain.mcp_proxy.pins import (
    Pin,
    PinFile,
    PinFiles,
    SessionPins,
    accepted,
    comparison,
    digest,
    digest_of_waiting,
    seen,
    withheld,
)
from tests.mcp_proxy.test_catalogue import tool

texts = st.sampled_from(["good", "bad", "worse", "hidden \u202e text"])


class PinTests(SynchronousTestCase):
    """The first definition counts until a person accepts another."""

    def test_the_first_counts(self) -> None:
        pin = seen(None, tool("t"), 1.0)
        self.assertEqual((pin.definition, pin.since, pin.by, pin.waiting), (tool("t"), 1.0, "", None))
        self.assertIsNone(withheld(pin, tool("t")))

    def test_another_one_waits(self) -> None:
        pin = seen(seen(None, tool("t", "good"), 1.0), tool("t", "bad"), 2.0)
        self.assertEqual((pin.definition, pin.waiting, pin.since), (tool("t", "good"), tool("t", "bad"), 1.0))
        self.assertEqual(withheld(pin, tool("t", "bad")), "changed-definition")
        self.assertIsNone(withheld(pin, tool("t", "good")))
        new = accepted(pin, "ada", 3.0)
        self.assertEqual((new.definition, new.waiting, new.since, new.by), (tool("t", "bad"), None, 3.0, "ada"))
        self.assertEqual(withheld(new, tool("t", "good")), "changed-definition")

    def test_any_part_of_a_definition_counts(self) -> None:
        pin = seen(None, tool("t"), 1.0)
        changes: list[dict[str, Any]] = [
            {"annotations": {"readOnlyHint": True}},
            {"inputSchema": {}},
            {"title": "x"},
            {"x": 1},
        ]
        for more in changes:
            self.assertEqual(withheld(pin, {**tool("t"), **more}), "changed-definition")

    def test_hidden_text_waits_from_the_first(self) -> None:
        pin = seen(None, tool("t", "a\u202eb"), 1.0)
        self.assertEqual((pin.definition, withheld(pin, tool("t", "a\u202eb"))), (None, "hidden-text"))
        self.assertIsNone(withheld(accepted(pin, "ada", 2.0), tool("t", "a\u202eb")))

    def test_what_has_no_pin_is_withheld(self) -> None:
        self.assertEqual(withheld(None, tool("t")), "not-pinned")

    @given(st.lists(st.tuples(st.booleans(), texts), min_size=1))
    def test_nothing_counts_but_the_first_and_what_was_accepted(self, steps: list[tuple[bool, str]]) -> None:
        pin: Pin | None = None
        counts: str | None = None
        for yes, text in steps:
            first, pin = pin is None, seen(pin, tool("t", text), 1.0)
            if first and "\u202e" not in text:
                counts = text
            if yes and pin.waiting is not None:
                counts = pin.waiting["description"]
                pin = accepted(pin, "ada", 2.0)
            for other in ("good", "bad", "worse", "hidden \u202e text"):
                self.assertEqual(withheld(pin, tool("t", other)) is None, other == counts)


class ComparisonTests(SynchronousTestCase):
    """What a person is shown."""

    def test_old_beside_new(self) -> None:
        pin = seen(seen(None, tool("t", "good"), 1.0), tool("t", "bad \u202e \x1b[2J"), 2.0)
        lines = list(comparison("t", pin))
        self.assertIn('-  "description": "good",', lines)
        self.assertIn('+  "description": "bad \\u202e \\u001b[2J",', lines)
        self.assertIn('   "name": "t"', lines)

    @given(st.text(), st.text(), st.text())
    def test_it_is_whole_and_safe(self, name: str, old: str, new: str) -> None:
        assume(old != new)
        pin = Pin(tool(name, old), 1.0, waiting=tool(name, new))
        lines = list(comparison(name, pin))
        for line in lines:
            self.assertTrue(all(c.isprintable() or c in "\u3000\xa0 " or c.isspace() for c in line), ascii(line))
            self.assertNotIn("\n", line)
        whole = json.dumps(tool(name, new), indent=2, sort_keys=True).count("\n") + 1
        self.assertGreaterEqual(len([line for line in lines[1:] if not line.startswith("-")]), whole)


class FileTests(SynchronousTestCase):
    """They are kept for the home."""

    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.directory = Path(made.name, "definitions")
        self.files = PinFiles(self.directory, lambda: 7.0)
        self.file = self.files.of("s")

    def see(self, *definitions: dict[str, Any]) -> dict[str, Pin]:
        """:returns: what counts of some definitions, as another process reads it."""
        return PinFile(self.file.path, lambda: 7.0).see(definitions).pins

    def test_what_was_seen_is_kept_for_the_owner_only(self) -> None:
        self.assertEqual(self.file.see([tool("t", "good"), tool("u")]).new, 2)
        self.assertEqual(withheld(self.see(tool("t", "bad"))["t"], tool("t", "bad")), "changed-definition")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (self.directory, self.file.path)]
        self.assertEqual((modes, self.files.servers()), ([0o700, 0o600], ["s"]))

    def test_big_numbers_stay_the_same(self) -> None:
        definition = json.loads(json.dumps(tool("t", x=[1.5, None, 2**60, -1, 1e300])))
        self.see(definition)
        self.assertIsNone(withheld(self.see(definition)["t"], definition))

    def test_what_is_known_is_not_written_again(self) -> None:
        self.see(tool("t"))
        mark = self.file.mark()
        self.see(tool("t"))
        self.assertEqual(self.file.mark(), mark)
        self.see(tool("t", "bad"))
        self.assertNotEqual(self.file.mark(), mark)

    def test_accepting(self) -> None:
        self.assertRaises(NotFound, self.file.accept, (), "x", "ada")
        for definition in (tool("t", "good"), tool("u", "good"), tool("t", "bad"), tool("u", "bad")):
            self.see(definition)
        shown = digest_of_waiting(self.file.read())
        self.assertRaises(NotFound, self.file.accept, ("v",), shown, "ada")
        self.assertRaises(StaleDecision, self.file.accept, ("t",), shown, "ada")
        self.see(tool("t", "worse"))
        self.assertRaises(StaleDecision, self.file.accept, (), shown, "ada")
        self.file.accept(("t",), digest_of_waiting({"t": self.file.read()["t"]}), "ada")
        pins = self.file.read()
        self.assertEqual((pins["t"].definition, pins["t"].by), (tool("t", "worse"), "ada"))
        self.assertEqual((pins["u"].definition, pins["u"].waiting), (tool("u", "good"), tool("u", "bad")))
        self.assertRaises(NotFound, self.file.accept, ("t",), shown, "ada")

    def test_a_damaged_file_lets_nothing_be_used(self) -> None:
        self.see(tool("t"))
        good = self.file.path.read_bytes()
        wrong = b'{"version":1,"tools":{"t":{"definition":{},"since":1,"x":1}}}'
        for data in (b"", good[:-1], b"[]", b'{"version":2,"tools":{}}', b'{"tools":{}}', wrong, b"\xff"):
            self.file.path.write_bytes(data)
            error = self.assertRaises(ConfigurationError, self.file.see, [tool("t")])
            self.assertIn(str(self.file.path), str(error))
            self.assertIn("remove it", str(error))
            self.assertEqual(self.file.path.read_bytes(), data)

    def test_a_link_is_not_followed(self) -> None:
        self.directory.mkdir(mode=0o700)
        self.file.path.symlink_to("/etc/passwd")
        self.assertIn("is a link", str(self.assertRaises(ConfigurationError, self.file.see, [tool("t")])))

    def test_what_is_beyond_the_limits_is_not_pinned(self) -> None:
        self.patch(pin_files, "TOOLS_LIMIT", 2)
        self.patch(pin_files, "DEFINITION_LIMIT", 200)
        self.assertEqual(set(self.see(tool("long", "x" * 300), tool("a"), tool("b"), tool("c"))), {"a", "b"})
        self.assertEqual(self.see(tool("a", "bad"))["a"].waiting, tool("a", "bad"))
        self.patch(pin_files, "FILE_LIMIT", 300)
        self.assertRaises(ConfigurationError, self.file.see, [tool("a", "worse" * 20)])

    def test_names_of_servers_are_no_paths(self) -> None:
        for name in ("../s", "", "a/b", ".s"):
            self.assertRaises(NotFound, self.files.of, name)


class SessionPinTests(SynchronousTestCase):
    """What one session uses."""

    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.files = PinFiles(Path(made.name, "definitions"), lambda: 7.0)
        self.told: list[str] = []
        self.pins = SessionPins(self.files, {"own"}, self.told.append)

    def test_our_own_servers_are_not_pinned(self) -> None:
        for text in ("one release", "another release"):
            pins = self.pins.see("own", [tool("t", text)])
            self.assertIsNone(withheld(pins["t"], tool("t", text)))
        self.assertEqual((self.files.servers(), self.told, self.pins.changed("own")), ([], [], False))

    def test_the_first_sight_is_reported(self) -> None:
        for _ in range(2):
            self.pins.see("s", [tool("t")])
        self.assertEqual(self.told, ["MCP server s: 1 tool is new and pinned with the current definition"])

    def test_what_others_accept_is_noticed(self) -> None:
        for text in ("good", "bad"):
            self.pins.see("s", [tool("t", text)])
        self.assertTrue(self.pins.changed("s"))
        self.pins.see("s", [tool("t", "bad")])
        self.assertFalse(self.pins.changed("s"))
        self.files.of("s").accept((), digest_of_waiting(self.files.of("s").read()), "ada")
        self.assertTrue(self.pins.changed("s"))
        pins = self.pins.see("s", [tool("t", "bad")])
        self.assertEqual((withheld(pins["t"], tool("t", "bad")), pins["t"].by), (None, "ada"))
        self.assertEqual(digest(pins["t"].definition or {}), digest(tool("t", "bad")))
