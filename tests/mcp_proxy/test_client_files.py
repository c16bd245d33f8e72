"""The files of other MCP clients: where they are, and what is taken from them."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.mcp_proxy.client_fields import FieldError, translated
from ironcurtain.mcp_proxy.client_files import CLIENTS, is_ours, places, table, with_references, without_rights
from ironcurtain.mcp_proxy.server_fields import ServerFields
from ironcurtain.mcp_proxy.server_tables import ServerTable

HOME, PROJECT = Path("/home/ada"), Path("/src/app")
SECRET = "sk-live-8fQ2mVx71LbTz0Rk"
OWN = ("command", "args", "env", "url", "timeout", "disabled")

FILES = {
    "claude_desktop_config.json": '{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"]}}, "theme": "dark"}',
    "mcp.json": '{/* VS Code */ "inputs": [], "servers": {"a": {"type": "http", "url": "https://a.test/mcp"},}}',
    "settings.json": '{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "a"}}}}',
    "config.yaml": "GOOSE_MODEL: x\nextensions:\n  a:\n    {type: stdio, cmd: uvx, envs: {K: v}, env_keys: [T]}\n",
    "config.toml": 'model = "x"\n[mcp_servers.a]\ncommand = "npx"\nargs = ["-y"]\n[mcp_servers.a.env]\nK = "v"\n',
}


class PlaceTests(SynchronousTestCase):
    """Usual places on Linux and macOS."""

    def found(self, client: str, mac: bool = False, **environ: str) -> list[str]:
        return list(map(str, places(client, HOME, PROJECT, environ, mac)))

    def test_each_client_has_places(self) -> None:
        for client in CLIENTS:
            for mac in (False, True):
                self.assertTrue(self.found(client, mac), client)

    def test_linux(self) -> None:
        self.assertEqual(self.found("claude-desktop"), ["/home/ada/.config/Claude/claude_desktop_config.json"])
        self.assertEqual(self.found("codex"), ["/home/ada/.codex/config.toml"])
        self.assertEqual(self.found("codex", CODEX_HOME="/x"), ["/x/config.toml"])
        self.assertEqual(self.found("cursor"), ["/src/app/.cursor/mcp.json", "/home/ada/.cursor/mcp.json"])
        self.assertEqual(
            self.found("vscode", XDG_CONFIG_HOME="/c")[:2], ["/src/app/.vscode/mcp.json", "/c/Code/User/mcp.json"]
        )

    def test_macos(self) -> None:
        support = "/home/ada/Library/Application Support"
        self.assertEqual(self.found("claude-desktop", True), [f"{support}/Claude/claude_desktop_config.json"])
        self.assertIn(f"{support}/Code/User/mcp.json", self.found("vscode", True))


class EntryTests(SynchronousTestCase):
    """Entries of each kind of file."""

    def test_each_kind_of_file(self) -> None:
        for name, text in FILES.items():
            self.assertEqual([entry.name for entry in table(text, name).entries], ["a"], name)
        self.assertEqual(table(FILES["config.toml"], "config.toml").entries[0].value["env"], {"K": "v"})

    def test_file_without_servers_has_none(self) -> None:
        self.assertEqual(table('{"editor.fontSize": 12}', "settings.json"), ServerTable(("mcpServers",), ()))

    def test_servers_that_claude_code_has_for_one_project(self) -> None:
        top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, top)
        (top / "shop" / ".git").mkdir(parents=True)
        (top / "shop" / "web").mkdir()
        mine = {"mcpServers": {"mine": {"command": "a"}}}
        for projects, directory, names in (
            ({f"{top}/shop": mine}, "shop", ["mine", "all"]),
            ({f"{top}/shop": mine}, "shop/web", ["mine", "all"]),
            ({f"{top}/shop/web": mine, f"{top}/shop": {"mcpServers": {}}}, "shop/web", ["mine", "all"]),
            ({f"{top}/shop/web": mine}, "shop", ["all"]),
            ({f"{top}": mine}, "shop", ["all"]),
            ({f"{top}/shop": {"mcpServers": None}}, "shop", ["all"]),
            ({f"{top}/shop": []}, "shop", ["all"]),
            ([mine], "shop", ["all"]),
        ):
            text = json.dumps({"projects": projects, "mcpServers": {"all": {"command": "b"}}})
            found = table(text, ".claude.json", top / directory)
            self.assertEqual([entry.name for entry in found.entries], names, text)
            self.assertEqual([entry.name for entry in table(text, ".claude.json").entries], ["all"])
        self.assertEqual(table('model = "x"', "config.toml").entries, ())

    def test_yaml_is_read_as_json_would_be(self) -> None:
        text = "extensions:\n  a:\n    cmd: uvx\n    timeout: .inf\n    on: 2026-01-02\n    2: yes\n"
        (entry,) = table(text, "config.yaml").entries
        self.assertEqual(entry.value, {"cmd": "uvx", "timeout": None, "true": "2026-01-02", "2": True})

    def test_wrong_files_are_refused(self) -> None:
        for text, name in (
            ("[", "x.json"),
            ("[]", "x.json"),
            ('{"mcpServers": 1}', "x.json"),
            ("a: [", "x.yaml"),
            ("mcpServers: {a: &b {command: x}, c: *b}", "x.yaml"),
        ):
            with self.assertRaises(ConfigurationError):
                table(text, name)

    def test_ironcurtain_itself_is_recognized(self) -> None:
        self.assertTrue(is_ours({"command": "/opt/bin/ironcurtain", "args": ["mcp-proxy"]}))
        self.assertFalse(is_ours({"command": "npx"}))
        self.assertFalse(is_ours({"url": "https://a.test/"}))


class SecretTests(SynchronousTestCase):
    """Secrets in imported entries."""

    def test_secret_that_the_environment_has_becomes_a_reference(self) -> None:
        entry = {"command": "x", "env": {"API_TOKEN": SECRET, "MODE": "fast"}}
        found, kept = with_references(entry, {"API_TOKEN": SECRET, "MODE": "fast"})
        self.assertEqual((found["env"], kept), ({"API_TOKEN": "${API_TOKEN}", "MODE": "fast"}, {}))

    def test_other_secrets_are_named(self) -> None:
        entry = {"env": {"API_TOKEN": SECRET, "B": "${B}"}, "headers": {"Authorization": f"Bearer {SECRET}"}}
        found, kept = with_references(entry, {"API_TOKEN": "another"})
        revealed = {name: secret.reveal() for name, secret in kept.items()}
        self.assertEqual((found, revealed), (entry, {"API_TOKEN": SECRET, "Authorization": f"Bearer {SECRET}"}))

    def test_secrets_are_found_in_each_spelling(self) -> None:
        for name in ("envs", "Env", "environment", "http_headers"):
            entries = {name: {"API_TOKEN": SECRET}}, {"transport": {name: {"API_TOKEN": SECRET}}}
            for entry in entries:
                found, kept = with_references(entry, {"API_TOKEN": SECRET})
                self.assertEqual((SECRET in str(found), kept), (False, {}), entry)
                self.assertEqual(list(with_references(entry, {})[1]), ["API_TOKEN"])


class RightsTests(SynchronousTestCase):
    """Fields of ours in files of others."""

    def test_fields_that_give_rights_are_taken_away(self) -> None:
        rights = {"sandbox": "none", "env_command": {"A": "touch x"}, "ca_file": "x"}
        plain = {"args": ["b"], "env": {"C": "d"}}
        self.assertEqual(
            without_rights({"command": "a", **plain, **rights}), ({"command": "a", **plain}, sorted(rights))
        )
        for name in ("command", "transport", "requestOptions", "requestInit"):
            nested = without_rights({name: {"path": "a", **plain, **rights}})
            self.assertEqual(nested, ({name: {"path": "a", **plain}}, sorted(rights)), name)


class TranslationTests(SynchronousTestCase):
    """Fields of other clients in our terms."""

    def test_null_in_a_nested_command_is_no_value(self) -> None:
        entry = {"command": {"path": "npx", "args": None, "env": None}}
        self.assertEqual(translated(entry, OWN), ({"command": "npx"}, {}))

    def test_fields_of_goose(self) -> None:
        entry = {"cmd": "uvx", "envs": {"K": "v"}, "env_keys": ["T"], "bundled": None, "available_tools": []}
        fields, ignored = translated(entry, OWN)
        self.assertEqual(fields, {"command": "uvx", "env": {"T": "${T}", "K": "v"}})
        self.assertEqual([names for names in ignored.values()], [["available_tools"]])
        self.assertEqual(translated({"uri": "x", "type": "streamable_http"}, OWN)[0], {"url": "x", "type": "http"})

    def test_fields_of_continue(self) -> None:
        entry = {"url": "x", "requestOptions": {"headers": {"A": "b"}}}
        self.assertEqual(translated(entry, OWN), ({"url": "x", "headers": {"A": "b"}}, {}))

    def test_unknown_field_is_not_taken_for_another(self) -> None:
        for name in ("flags", "eager", "visible", "installed", "file", "install", "setupCommand", "readTimeout"):
            ignored = translated({"command": "x", name: 1}, ServerFields.__struct_fields__)[1]
            self.assertEqual(ignored, {"IronCurtain does not know it": [name]})
        for name, meant in (("comand", "command"), ("headr", "headers"), ("sandbx", "sandbox")):
            with self.assertRaisesRegex(FieldError, f"did you mean {meant}\\?"):
                translated({"command": "x", name: 1}, ServerFields.__struct_fields__)

    def test_other_spellings_of_fields_without_rights_are_read(self) -> None:
        self.assertEqual(translated({"Command": "x", "ARGS": ["a"]}, OWN)[0], {"command": "x", "args": ["a"]})
        with self.assertRaises(FieldError):
            translated({"command": "x", "Sandbox": "none"}, ServerFields.__struct_fields__)

    def test_timeout_in_seconds_is_a_timeout(self) -> None:
        for name in ("timeoutSeconds", "timeout_sec"):
            for seconds in (30, 7200):
                self.assertEqual(translated({"url": "x", name: seconds}, OWN)[0]["timeout"], seconds, name)

    def test_each_word_for_a_server_that_does_not_start(self) -> None:
        for entry in ({"disable": True}, {"enable": False}, {"isDisabled": 1}, {"isEnabled": "no"}):
            self.assertEqual(translated({"command": "x", **entry}, OWN)[0]["disabled"], True, entry)

    def test_truth_values_are_read_as_texts_and_numbers(self) -> None:
        for value, truth in ((True, True), ("true", True), ("True", True), (1, True), ("off", False), (0, False)):
            self.assertEqual(translated({"disabled": value}, OWN)[0]["disabled"], truth, value)
            self.assertEqual(translated({"enabled": value}, OWN)[0]["disabled"], not truth, value)

    def test_unreadable_truth_value_is_left_for_the_refusal(self) -> None:
        for name in ("disabled", "enabled"):
            self.assertEqual(translated({name: "perhaps"}, OWN)[0]["disabled"], "perhaps")

    def test_timeout_that_is_none_is_passed_over(self) -> None:
        values: tuple[Any, ...] = (-1, 0, {}, "soon", True)
        for value in values:
            self.assertEqual(translated({"timeout": value}, OWN), ({}, {"it is no number above 0": ["timeout"]}), value)

    def test_transport_with_fields_is_read(self) -> None:
        entry = {"transport": {"type": "streamable-http", "url": "https://a.example/mcp"}}
        self.assertEqual(translated(entry, (*OWN, "type"))[0], {"type": "http", "url": "https://a.example/mcp"})
