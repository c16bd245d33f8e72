"""The file of MCP servers."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, SandboxConfig, read_servers
from ironcurtain.network.access import Access, Entry
from ironcurtain.secrets.redaction import Secret


def read(servers: Any, **more: Any) -> tuple[Any, ...]:
    """:returns: what is read from a file with these servers."""
    return read_text(json.dumps({"mcpServers": servers, **more}))


def read_text(text: str, **environ: str) -> tuple[Any, ...]:
    """:returns: what is read from a file with this text."""
    return read_servers(text, "mcp-servers.json", workspace="/srv/w", home="/home/me", environ=environ)


class FormTests(SynchronousTestCase):
    """Entries that other programs have filled in."""

    def test_texts_for_lists_and_numbers_are_read(self) -> None:
        (server,) = read({"a": {"command": "x", "args": "-y 'a b'", "timeout": "60", "url": ""}})
        self.assertEqual((server.command, server.args, server.call_seconds), ("x", ("-y", "a b"), 60))
        self.assertEqual(server.reading.problems, ())

    def test_forms_that_are_not_filled_in_are_read(self) -> None:
        empty = {"args": "", "env": [], "headers": {}, "cwd": "", "type": "", "url": ""}
        self.assertEqual(read({"a": {"command": "x", **empty}}), (CommandServer("a", "x"),))
        (server,) = read({"a": {"url": " https://a.test/mcp ", "command": "", "args": []}})
        self.assertEqual((server.url.reveal(), server.reading.problems), ("https://a.test/mcp", ()))

    def test_zero_characters_stop_their_server_alone(self) -> None:
        for field, value in (
            ("command", "x\0"), ("args", ["a", "b\0"]), ("env", {"A": "\0"}), ("env", {"A\0": ""}), ("cwd", "/\0"),
            ("sandbox", {"read": ["/x\0"]}),
        ):  # fmt: skip
            server, other = read({"a": {"command": "x", field: value}, "b": {"command": "x"}})
            self.assertRegex(
                server.reading.problems[0], rf"^mcp-servers.json:1: mcpServers.a.{field}.*: has a zero char"
            )
            self.assertEqual(other.reading.problems, ())

    def test_lists_of_variables_are_tables(self) -> None:
        for env in (["A=b=c", "D="], [{"name": "A", "value": "b=c"}, {"name": "D", "value": ""}]):
            (server,) = read({"a": {"command": "x", "env": env}})
            self.assertEqual(server.environment, {"A": "b=c", "D": ""})
        for wrong in (["A"], [1], [{"name": "A"}]):
            (server,) = read({"a": {"command": "x", "env": wrong}})
            self.assertIn("env: must be a table", server.reading.problems[0])

    def test_time_to_start_is_read_and_stops_no_server(self) -> None:
        for field, value, seconds in (
            ("startup_timeout_ms", 20_000, 20),
            ("startup_timeout_sec", "20", 20),
            ("startup_timeout_sec", 0, 60),
            ("startup_timeout_sec", None, 60),
            ("startup_timeout_sec", {}, 60),
        ):
            (server,) = read({"a": {"command": "x", field: value}})
            self.assertEqual((server.start_seconds, server.reading.problems), (seconds, ()), (field, value))

    def test_args_that_cannot_be_split_are_named(self) -> None:
        (server,) = read({"a": {"command": "x", "args": "'open"}})
        self.assertIn("args: must be a list", server.reading.problems[0])


class WindowsTests(SynchronousTestCase):
    """Entries that were written on Windows."""

    def test_shell_of_windows_is_left_out(self) -> None:
        for entry in (
            {"command": "cmd", "args": ["/c", "npx", "-y", "notes"]},
            {"command": "cmd.exe", "args": ["/d", "/s", "/C", "npx -y notes"]},
            {"command": "cmd /c npx -y notes"},
            {"command": "npx.cmd", "args": ["-y", "notes"]},
        ):
            (server,) = read({"a": entry})
            self.assertEqual((server.command, *server.args), ("npx", "-y", "notes"))
            self.assertIn(" is of Windows; the program is npx", server.reading.notes[-1])
            self.assertEqual(server.reading.problems, ())

    def test_paths_of_windows_are_named_whole(self) -> None:
        node, script = r"C:\Program Files\nodejs\node.exe", r"D:\src\server\index.js"
        for place, entry in (
            ("command", {"command": node, "args": [script]}),
            ("args[0]", {"command": "node", "args": [script]}),
            ("cwd", {"command": "node", "cwd": "D:/src"}),
        ):
            (server,) = read({"a": entry})
            self.assertEqual(len(server.reading.problems), 1)
            self.assertRegex(server.reading.problems[0], rf"^{re.escape(place)}: .* is a path of Windows: write")
        self.assertIn(node, read({"a": {"command": node}})[0].reading.problems[0])
        self.assertEqual(read({"a": {"command": "tool.exe", "args": [script]}})[0].reading.problems, ())

    def test_backslashes_after_a_directory_are_slashes(self) -> None:
        entry = {
            "command": r"${workspaceFolder}\bin\run",
            "args": [r"--data=${userHome}\data", r"a\b", r"%USERPROFILE%\c"],
        }
        (server,) = read({"a": entry})
        self.assertEqual(server.command, "/srv/w/bin/run")
        self.assertEqual(server.args, ("--data=/home/me/data", r"a\b", "/home/me/c"))

    def test_variables_of_windows_are_named(self) -> None:
        (server,) = read({"a": {"command": "x", "args": [r"%APPDATA%\npm"], "env": {"T": "%Temp%", "P": "%E4%B8%AD"}}})
        self.assertEqual(
            [problem.split(" is a variable of Windows")[0] for problem in server.reading.problems],
            ["args[0]: %APPDATA%", "env.T: %Temp%"],
        )


class ReadTests(SynchronousTestCase):
    """What is taken, and what is refused, by name."""

    def refused(self, servers: Any, **more: Any) -> str:
        """:returns: the message that a file, or the one server in it, is refused with."""
        try:
            (server,) = read(servers, **more)
        except ConfigurationError as e:
            return str(e)
        self.assertIsNotNone(server.reading.error)
        self.assertEqual((server.command, server.reading.problems), ("", (str(server.reading.error),)))
        return str(server.reading.error)

    def test_the_usual_shape(self) -> None:
        servers = read(
            {"a": {"command": "x"}, "b": {"type": "stdio", "command": "y", "args": ["1"], "env": {"K": "v"}}}
        )
        self.assertEqual(servers, (CommandServer("a", "x"), CommandServer("b", "y", ("1",), {"K": "v"})))

    def test_our_additions(self) -> None:
        (server,) = read(
            {
                "a": {
                    "command": "x",
                    "cwd": "$WORKSPACE/sub",
                    "env_command": {"TOKEN": "pass show x"},
                    "sandbox": {"read": ["/usr"], "write": ["$WORKSPACE"], "network": ["example.com"]},
                    "agent_requests": ["sampling"],
                    "startup_timeout_sec": 90,
                }
            },
            version=1,
        )
        self.assertEqual(server.cwd, "/srv/w/sub")
        self.assertEqual(server.environment_commands, {"TOKEN": "pass show x"})
        self.assertEqual(server.sandbox, SandboxConfig(("/usr",), ("/srv/w",), Access((Entry("example.com"),))))
        self.assertEqual((server.agent_requests, server.start_seconds), ({"sampling"}, 90.0))

    def test_network_can_be_left_to_the_policy(self) -> None:
        for network, anything in ((True, True), (False, False)):
            (server,) = read({"a": {"command": "x", "sandbox": {"network": network}}})
            self.assertEqual(server.sandbox, SandboxConfig(access=Access(anything=anything)))

    def test_variables_in_arguments(self) -> None:
        arguments = ["$WORKSPACE", "--root=${HOME}/x", "$WORKSPACES", "$$HOME", "$OTHER", "~", "~/y"]
        (server,) = read({"a": {"command": "$HOME/bin/x", "args": arguments}})
        expected = ("/srv/w", "--root=/home/me/x", "$WORKSPACES", "$/home/me", "$OTHER", "~", "/home/me/y")
        self.assertEqual(server.args, expected)
        self.assertEqual(server.command, "/home/me/bin/x")

    def test_disabled_servers_are_left_out(self) -> None:
        self.assertEqual(
            read({"a": {"command": "x", "disabled": True}, "b": {"url": "http://x", "disabled": True}}), ()
        )

    def test_servers_behind_http(self) -> None:
        servers = read(
            {
                "a": {"url": "https://example.org/mcp?key=k"},
                "b": {
                    "type": "http",
                    "url": "http://127.0.0.1:3000/mcp",
                    "headers": {"X-Key": "a b"},
                    "headers_command": {"Authorization": "pass show b"},
                    "ca_file": "$HOME/ca.pem",
                    "agent_requests": ["sampling"],
                },
            }
        )
        commands = {"Authorization": "pass show b"}
        expected = HttpServer(
            "b",
            Secret("http://127.0.0.1:3000/mcp"),
            {"X-Key": Secret("a b")},
            commands,
            "/home/me/ca.pem",
            frozenset(["sampling"]),
        )
        self.assertEqual(servers, (HttpServer("a", Secret("https://example.org/mcp?key=k")), expected))
        self.assertEqual(servers[0].host, "example.org")
        self.assertNotIn("key=k", repr(servers))

    def test_addresses_that_secrets_are_not_sent_to(self) -> None:
        for url in (
            "http://example.org/mcp",
            "http://localhost.example/mcp",
            "https://me:pw@example.org/",
            "ftp://x",
            "x",
        ):
            self.assertIn("mcpServers.far.url: must look like https://", self.refused({"far": {"url": url}}))
        self.assertIn("mcpServers.far.url", self.refused({"far": {"type": "http"}}))

    def test_localhost_is_this_machine_whatever_a_resolver_says(self) -> None:
        for port in ("", ":3000"):
            (server,) = read({"near": {"url": f"http://LocalHost{port}/mcp?key=k"}})
            self.assertEqual(server.url.reveal(), f"http://127.0.0.1{port}/mcp?key=k")
        (server,) = read({"near": {"url": "https://localhost/mcp"}})
        self.assertEqual(server.url.reveal(), "https://localhost/mcp")  # its certificate is for that name

    def test_headers_that_cannot_be_sent(self) -> None:
        for name in ("", "a b", "a:", "Host", "MCP-Session-Id", "é"):
            for member in ("headers", "headers_command"):
                refused = self.refused({"far": {"url": "https://example.org/", member: {name: "x"}}})
                self.assertIn(f"mcpServers.far.{member}.{name}: ", refused)
                self.assertIn("cannot be set here", refused)
        twice = {"headers": {"X-Key": "a"}, "headers_command": {"x-key": "b"}}
        refused = self.refused({"far": {"url": "https://example.org/", **twice}})
        self.assertIn("mcpServers.far.headers_command.x-key: cannot be set here, or not again", refused)
        for value in ("", " a", "a\r\nb: c", "é", "\1"):
            refused = self.refused({"far": {"url": "https://example.org/", "headers": {"X-Key": value}}})
            self.assertIn("headers.X-Key: its value cannot be sent", refused)

    def test_fields_of_the_other_kind(self) -> None:
        value: object
        for field, value in (("sandbox", {}), ("env_command", {"A": "b"}), ("command", "x")):
            message = self.refused({"far": {"url": "https://example.org/", field: value}})
            self.assertIn(f"mcpServers.far.{field}: has no meaning for a server that is reached by HTTP", message)
        for field, value in (("ca_file", "x"), ("headers_command", {"A": "b"})):
            self.assertIn("that is run as a command", self.refused({"near": {"command": "x", field: value}}))

    def test_needless_fields_of_other_clients_are_named(self) -> None:
        url, headers = "https://example.org/", {"bearer_token_env_var": "TOKEN"}
        for entry, name, way in (
            ({"url": url, "args": ["x"], "cwd": "/"}, "args, cwd", "reached by HTTP"),
            ({"url": url, "type": "http", "command": "x"}, "command", "reached by HTTP"),
            ({"command": "x", **headers}, "headers", "run as a command"),
            ({"command": "x", "type": "stdio", "url": url}, "url", "run as a command"),
        ):
            (server,) = read({"a": entry})
            self.assertEqual(server.reading.problems, ())
            self.assertEqual(server.reading.notes, (f"ignored: {name} (the server is {way})",))

    def test_names_that_agents_cannot_use_are_replaced_and_that_is_noted(self) -> None:
        for name, ours in (("Brave Search", "Brave-Search"), ("a.b/c", "a-b-c"), ("a__b", "a-b"), ("_a_", "a")):
            (server,) = read({name: {"command": "x"}})
            self.assertEqual((server.name, len(server.reading.notes)), (ours, 1))
            self.assertIn(f"is called {ours} here", server.reading.notes[0])
        for name in ("a", "A-1", "a_b", "x" * 32):
            (server,) = read({name: {"command": "x"}})
            self.assertEqual((server.name, server.reading.notes), (name, ()))

    @given(
        st.lists(
            st.text(max_size=40).filter(lambda name: not name.startswith(("#", "/", "_"))), unique=True, max_size=6
        )
    )
    def test_each_server_has_a_name_of_its_own(self, names: list[str]) -> None:
        servers = read({name: {"command": "x"} for name in names})
        self.assertEqual(len({server.name for server in servers}), len(names))
        for server in servers:
            self.assertRegex(server.name, BACKEND_NAME)

    def test_names_that_become_the_same_are_not_taken_for_one_another(self) -> None:
        first, second = read({"a b": {"command": "x"}, "a.b": {"command": "y"}})
        self.assertEqual((first.name, first.command, second.command), ("a-b", "x", ""))
        self.assertIn("mcpServers.a.b: there is a server 'a-b' already", second.reading.problems[0])

    def test_the_name_of_the_built_in_server_is_refused(self) -> None:
        for name in ("network", "network ", " network"):
            bad, good = read({name: {"command": "x"}, "good": {"command": "y"}})
            self.assertEqual((bad.command, good.command), ("", "y"))
            self.assertNotEqual(bad.name, "network")
            self.assertIn(f"mcpServers.{name}: the name network is that of IronCurtain's own", bad.reading.problems[0])

    def test_an_entry_that_is_wrong_stops_no_other_server(self) -> None:
        more = ({"command": 3}, {"sandbx": "none", "command": "x"}, {"command": "x", "args": {"y": 1}})
        entries: tuple[Any, ...] = ([], "x", 3, *more)
        for entry in entries:
            bad, good = read({"bad": entry, "good": {"command": "x"}})
            self.assertEqual((good.name, good.reading.problems), ("good", ()))
            self.assertIn("mcp-servers.json:1: mcpServers.bad", bad.reading.problems[0])

    def test_what_is_wrong_is_named(self) -> None:
        self.assertIn("mcpServers.a.args", self.refused({"a": {"command": "x", "args": {"y": 1}}}))
        self.assertIn("needs a command, or a url", self.refused({"a": {}}))
        self.assertIn("not an absolute path", self.refused({"a": {"command": "x", "sandbox": {"read": ["rel"]}}}))
        for hosts in (["https://example.org"], ["localhost:53"], 1):
            refused = self.refused({"a": {"command": "x", "sandbox": {"network": hosts}}})
            self.assertIn("mcpServers.a.sandbox.network", refused)
        self.assertIn("environment variable", self.refused({"a": {"command": "x", "env": {"A=B": "c"}}}))
        self.assertIn("version", self.refused({}, version=2))

    def test_fields_that_look_like_ours_are_refused(self) -> None:
        for field, meant in (("sandbx", "sandbox"), ("envCommand", "env_command"), ("comand", "command")):
            refused = self.refused({"a": {"command": "x", field: "none"}})
            self.assertIn(f"mcpServers.a.{field}: there is no such setting: did you mean {meant}?", refused)
        self.assertIn('write "sandbox": {"network"', self.refused({"a": {"command": "x", "network": ["example.org"]}}))

    def test_what_cannot_start_stops_no_other_server(self) -> None:
        old, odd, unset, good = read(
            {
                "old": {"type": "sse", "url": "https://example.org/sse"},
                "odd": {"type": "ws", "url": "wss://example.org/"},
                "unset": {"url": "${FAR_URL}/mcp", "headers": {"X-Key": "${FAR_KEY}"}},
                "good": {"command": "x", "env": {"A": "b"}},
            }
        )
        self.assertIn("streamable HTTP", old.reading.problems[0])
        self.assertIn("there is no type 'ws'", odd.reading.problems[0])
        self.assertIn("url: the environment variable FAR_URL is not set", unset.reading.problems[0])
        self.assertIn("headers.X-Key: the environment variable FAR_KEY is not set", unset.reading.problems[1])
        self.assertEqual(good.reading.problems, ())

    def test_the_former_transport_is_not_believed_of_an_address_that_may_have_the_newer(self) -> None:
        former, newer = (
            read({"far": {"type": "sse", "url": f"https://example.org/{path}"}})[0].reading for path in ("sse/", "mcp")
        )
        self.assertIn("give the server's URL for streamable HTTP", former.problems[0])
        self.assertEqual(newer.problems, ())
        self.assertIn("taken for one of streamable HTTP", newer.notes[0])

    def test_references_are_expanded_and_noted(self) -> None:
        entry = {
            "command": "${TOOLS}/serve",
            "args": ["--port", "${PORT:-80}", "${OWN_NAME}"],
            "env": {"TOKEN": "${env:GH_TOKEN}", "OWN_NAME": "x", "MODE": "plain"},
            "cwd": "${workspaceFolder}/sub",
        }
        text = json.dumps({"mcpServers": {"a": entry}})
        (server,) = read_text(text, TOOLS="/opt/tools", GH_TOKEN="ghx-1234567890abcdef")
        self.assertEqual((server.command, server.cwd), ("/opt/tools/serve", "/srv/w/sub"))
        self.assertEqual(server.args, ("--port", "80", "${OWN_NAME}"))
        self.assertEqual(server.environment, {"TOKEN": "ghx-1234567890abcdef", "OWN_NAME": "x", "MODE": "plain"})
        self.assertEqual(set(server.reading.variables), {"TOOLS", "GH_TOKEN"})
        self.assertEqual(server.reading.secrets, (Secret("ghx-1234567890abcdef"),))
        self.assertNotIn("1234567890", repr(server))

    def test_a_command_with_arguments_is_split(self) -> None:
        (server,) = read({"a": {"command": "npx -y 'a b'", "args": ["c"]}})
        self.assertEqual((server.command, server.args), ("npx", ("-y", "a b", "c")))
        self.assertIn("the program is npx", server.reading.notes[0])
        self.assertIn("cannot be read as a command line", self.refused({"a": {"command": "npx 'x"}}))

    def test_shells_expand_their_variables_themselves(self) -> None:
        (server,) = read({"a": {"command": "sh", "args": ["-c", "exec x --key ${KEY} $WORKSPACE"]}})
        self.assertEqual(server.args, ("-c", "exec x --key ${KEY} /srv/w"))
        self.assertEqual(server.reading.problems, ())

    def test_what_is_no_file(self) -> None:
        twice = '{"mcpServers": {}, "mcpServers": {}}'
        for text in ("", "{", "[]", "{}", '{"mcpServers": 1}', twice):
            with self.assertRaises(ConfigurationError):
                read_text(text)
