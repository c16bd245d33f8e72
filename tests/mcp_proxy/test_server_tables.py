"""Where servers stand in a file."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.mcp_proxy.server_tables import SERVERS, is_part_of_client, read_table
from ironcurtain.mcp_proxy.servers_config import read_servers

SERVER = {"command": "x"}
NAMES = st.sampled_from(
    ["mcpServers", "servers", "mcp", "extensions", "command", "url", "name", "type", "_a", "version"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=3),
)


def names(file: Any) -> list[str] | None:
    """:returns: the names of the servers of a file; ``None`` if it has no place for them."""
    found = read_table("f.json", file, json.dumps(file))
    return None if found is None else [entry.name for entry in found.entries]


class TableTests(SynchronousTestCase):
    def test_each_place(self) -> None:
        for place in SERVERS:
            file: Any = {"a": SERVER}
            for key in reversed(place):
                file = {key: file}
            self.assertEqual(names({"other": 1, **file}), ["a"], place)

    def test_list_has_names_within(self) -> None:
        servers = [{"name": "a", **SERVER}, {"id": "b", **SERVER}, SERVER, {"name": 1}, "x"]
        found = read_table("f.json", {"mcpServers": servers}, "")
        assert found is not None
        self.assertEqual([entry.name for entry in found.entries], ["a", "b", "server-3", "server-4", "server-5"])
        self.assertEqual([entry.value for entry in found.entries][:3], [SERVER] * 3)
        self.assertEqual(found.entries[1].place, ("mcpServers", 1))

    def test_servers_without_a_table_of_their_own(self) -> None:
        beside: tuple[dict[str, Any], ...] = ({}, {"$schema": "x"}, {"version": 1}, {"_comment": "c"}, {"inputs": []})
        for more in beside:
            self.assertEqual(names({"a": SERVER, "b": {"url": "x", "type": "http"}, **more}), ["a", "b"], more)
        other = ({"theme": "dark"}, {"lsp": {"a": SERVER}}, {"statusLine": {"type": "command", "command": "x"}})
        for more in other:
            self.assertIsNone(names({"a": SERVER, **more}), more)

    def test_comments_are_no_servers(self) -> None:
        for name, value in (("_comment", "c"), ("//", "c"), ("comment", ["c"]), ("#a", {"b": "c"}), ("b", None)):
            self.assertEqual(names({"mcpServers": {name: value, "a": SERVER}}), ["a"], name)
        self.assertEqual(names({"mcpServers": {"_a": SERVER, "note": SERVER, "b": "text"}}), ["_a", "note", "b"])

    def test_servers_that_are_commented_out_do_not_start(self) -> None:
        for name in ("//a", "# a", "_disabled_a"):
            text = json.dumps({"mcpServers": {"a": SERVER, name: SERVER, "b": SERVER}})
            servers = read_servers(text, "f.json", workspace="/w", home="/h", environ={})
            self.assertEqual([(s.name, s.reading.problems) for s in servers], [("a", ()), ("b", ())], name)

    def test_what_only_shares_a_name_is_no_place(self) -> None:
        others: tuple[dict[str, Any], ...] = (
            {"servers": ["a"]},
            {"servers": {}},
            {"mcp": {"allowed": ["a"]}},
            {"extensions": {"a": {}}},
        )
        for other in others:
            self.assertEqual(names({**other, "mcpServers": {"a": SERVER}}), ["a"], other)
        with self.assertRaises(ConfigurationError):
            names({"servers": {"a": SERVER}, "mcpServers": {"a": SERVER}})

    def test_parts_of_clients_are_told_from_servers(self) -> None:
        self.assertTrue(is_part_of_client({"type": "builtin", "name": "memory"}))
        self.assertFalse(is_part_of_client({"type": "stdio", "cmd": "x"}))

    @given(VALUES)
    def test_any_file_is_read_or_refused(self, file: Any) -> None:
        text = json.dumps(file)
        try:
            servers = read_servers(text, "f.json", workspace="/w", home="/h", environ={})
        except ConfigurationError:
            return
        self.assertEqual(len({server.name for server in servers}), len(servers))
