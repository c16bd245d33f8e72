"""Policies and annotations in files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.annotations import Conditional
from ironcurtain.policy.check import check
from ironcurtain.policy.loading import (
    compiled_policy,
    default_annotations,
    default_policy,
    load_annotations,
    load_policy,
)
from tests.policy.worlds import CASES, World

TOML = """\
version = 1
protected = ["~/.ssh"]
annotations = ["more.json"]

[tools.files.read.args]
path = ["read-path"]
mode = { default = ["none"] }

[[rules]]
name = "one"
if = { server = ["files"], paths = { roles = ["read-path"], within = "~/Documents" } }
then = "allow"

[[rules]]
name = "two"
if.tool = ["read"]
if.lists = [{ roles = ["github-owner"], allowed = ["@us"], matchType = "identifiers" }]
then = "escalate"

[lists.us]
values = ["acme"]

[approval.shell]
deny_patterns = ["rm"]
"""
RULE = {"name": "r", "description": "", "principle": "p", "if": {"server": ["s"]}, "then": "allow", "reason": ""}
COMPILED: dict[str, Any] = {
    "generatedAt": "x",
    "constitutionHash": "x",
    "inputHash": "x",
    "listDefinitions": [],
    "skippedServers": [],
    "rules": [RULE],
}


class _FileTests(SynchronousTestCase):
    def setUp(self) -> None:
        world = World.make()
        self.addCleanup(world.remove)
        self.place = Path(world.root)

    def write(self, name: str, content: Any) -> Path:
        """:param content: text, or what becomes JSON."""
        path = self.place / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


class TomlTests(_FileTests):
    """``policy.toml``"""

    def test_everything_is_read(self) -> None:
        self.write("more.json", {"servers": {"x": {"tools": [{"toolName": "t", "args": {"a": ["fetch-url"]}}]}}})
        policy = load_policy(self.write("policy.toml", TOML))
        self.assertEqual([rule.name for rule in policy.rules], ["one", "two"])
        self.assertEqual(policy.protected, ("~/.ssh",))
        self.assertEqual(policy.lists["us"].effective(), ("acme",))
        self.assertEqual(policy.approval, {"shell": {"deny_patterns": ["rm"]}})
        table = policy.annotations.table()
        self.assertEqual(table["files", "read"].args["path"], ("read-path",))
        self.assertIsInstance(table["files", "read"].args["mode"], Conditional)
        self.assertEqual(table["x", "t"].args, {"a": ("fetch-url",)})

    def test_errors_name_field_and_line(self) -> None:
        for old, new, field, line in (
            ('then = "allow"', 'then = "permit"', "rules[0].then", 12),
            ('then = "allow"', "", "rules[0].then", 9),
            ('"read-path"], within', '"reads"], within', "rules[0].if.paths.roles[0]", 11),
            ('within = "~/Documents"', 'inside = "~"', "rules[0].if.paths.inside", 11),
            ('roles = ["read-path"], within', 'roles = ["fetch-url"], within', "rules[0].if.paths", 11),
            ("if.tool", "if.tools", "rules[1].if.tools", 16),
            ("matchType", "matchtype", "rules[1].if.lists[0].matchtype", 17),
            ("[lists.us]\nvalues", "[lists.us]\nvalue", "lists.us.value", 21),
            ('path = ["read-path"]', 'path = ["reads"]', "tools.files.read.args.path[0]", 6),
            ("[approval.shell]", "[aproval.shell]", "aproval", 23),
            ('protected = ["~/.ssh"]', "protected = [1]", "protected[0]", 2),
            ('protected = ["~/.ssh"]', 'protected = ["~/.ssh", "/srv/\\u0000x"]', "protected[1]", 2),
            ('within = "~/Documents"', 'within = "~/Doc\\u0000"', "rules[0].if.paths", 11),
            ("version = 1", "version = 2", "version", 1),
            ('name = "two"', 'name = "two" "', "", 15),
        ):
            self.write("more.json", {"servers": {}})
            path = self.write("policy.toml", TOML.replace(old, new, 1))
            error = self.assertRaises(ConfigurationError, load_policy, path)
            self.assertEqual((error.field, error.line, error.source), (field, line, str(path)), str(error))

    def test_a_newer_version_is_refused_by_name(self) -> None:
        error = self.assertRaises(ConfigurationError, load_policy, self.write("policy.toml", "version = 7\nnew = 1\n"))
        self.assertIn("version 7", str(error))

    def test_files_that_cannot_be_read(self) -> None:
        self.assertRaises(ConfigurationError, load_policy, self.place / "none.toml")
        self.assertRaises(ConfigurationError, load_policy, self.place / "none.json")
        (self.place / "bad.toml").write_bytes(b"\xff")
        self.assertRaises(ConfigurationError, load_policy, self.place / "bad.toml")
        self.assertRaises(ConfigurationError, load_policy, self.write("bad.json", "{"))
        twice = self.write("twice.json", '{"rules": [{"name": "a", "then": "deny", "then": "allow"}]}')
        self.assertIn('"then" occurs twice', str(self.assertRaises(ConfigurationError, load_policy, twice)))
        self.assertRaises(ConfigurationError, load_policy, self.write("list.json", []))

    def test_what_is_no_regular_file_is_refused_at_once(self) -> None:
        """A FIFO would keep us waiting, a device might never end."""
        os.mkfifo(self.place / "fifo")
        for target in (self.place / "fifo", Path("/dev/zero"), self.place):
            for name in ("policy.toml", "policy.json", "dynamic-lists.json", "tool-annotations.json", "more.json"):
                for path in self.place.glob("*.*"):
                    path.unlink()
                (self.place / name).symlink_to(target)
                policy = self.place / "policy.toml"
                if name == "more.json":
                    self.write("policy.toml", TOML)
                elif not name.startswith("policy"):
                    policy = self.write("policy.json", COMPILED)
                else:
                    policy = self.place / name
                error = self.assertRaises(ConfigurationError, load_policy, policy)
                self.assertEqual(str(error), f"{self.place / name}: is not a regular file")


class CompiledTests(_FileTests):
    """A compiled policy as it is."""

    def test_metadata_is_passed_over(self) -> None:
        policy = load_policy(self.write("compiled-policy.json", COMPILED))
        self.assertEqual(policy.rules[0].name, "r")

    def test_lists_and_annotations_beside_it(self) -> None:
        lists = {"us": {"values": ["a"], "manualAdditions": ["b"], "manualRemovals": ["A"], "resolvedAt": "x"}}
        self.write("dynamic-lists.json", {"generatedAt": "x", "lists": lists})
        self.write("tool-annotations.json", CASES["annotations"])
        policy = load_policy(self.write("compiled-policy.json", COMPILED))
        self.assertEqual(policy.lists["us"].effective(), ("b",))
        self.assertIn(("git", "git_push"), policy.annotations.table())

    def test_comments_and_a_byte_order_mark_are_passed_over(self) -> None:
        path = self.write("compiled-policy.json", COMPILED)
        plain = Path(path).read_text()
        Path(path).write_text(f"\ufeff// ours\r\n{plain}/* end */")
        self.assertEqual(load_policy(path).rules, compiled_policy(COMPILED).rules)

    def test_a_condition_that_is_not_known_is_no_metadata(self) -> None:
        rule = {**RULE, "if": {"server": ["s"], "sideEffects": False}}
        error = self.assertRaises(ConfigurationError, compiled_policy, {"rules": [rule]})
        self.assertEqual(error.field, "rules[0].if.sideEffects")

    def test_rules_must_be_there(self) -> None:
        error = self.assertRaises(ConfigurationError, compiled_policy, {"rule": []})
        self.assertEqual(error.field, "rules")

    def test_annotations_name_the_argument(self) -> None:
        wrong: dict[str, Any] = {"servers": {"s": {"tools": [{"toolName": "t", "args": {"a": ["read"]}}]}}}
        error = self.assertRaises(ConfigurationError, load_annotations, self.write("a.json", wrong))
        self.assertEqual(error.field, "servers.s.tools[0].args.a[0]")
        two = {"condition": {"arg": "x", "equals": 1, "is": "present"}, "roles": []}
        wrong["servers"]["s"]["tools"][0]["args"]["a"] = {"default": [], "when": [two]}
        error = self.assertRaises(ConfigurationError, load_annotations, self.write("a.json", wrong))
        self.assertEqual(error.field, "servers.s.tools[0].args.a.when[0].condition")


class ShippedTests(SynchronousTestCase):
    """What comes with the program."""

    def test_it_can_be_read_and_has_no_mistakes(self) -> None:
        self.assertEqual(check(default_policy(), default_annotations()), [])

    def test_every_argument_of_our_file_server_is_known(self) -> None:
        from ironcurtain.servers.files.table import SCHEMAS

        table = default_annotations().table()
        for tool, schema in SCHEMAS.items():
            self.assertEqual(set(schema["properties"]), set(table["filesystem", tool].args), tool)
