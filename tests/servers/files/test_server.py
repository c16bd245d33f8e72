from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SkipTest, SynchronousTestCase, TestCase

from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.jsonrpc.framing import TOO_LONG
from ironcurtain.servers.files.__main__ import directories
from ironcurtain.servers.files.table import DEFINITIONS
from ironcurtain.servers.files.tools import FileTools
from ironcurtain.servers.files.walk import Roots
from ironcurtain.servers.server import VERSIONS, ToolServer, account_of

COMMAND = [sys.executable, "-m", "ironcurtain.servers.files"]
REPOSITORY = str(Path(__file__).parents[3])


class ProtocolTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        roots = Roots([directory.name])
        self.addCleanup(roots.close)
        self.server = ToolServer("files", "", DEFINITIONS, FileTools(roots).call)

    def say(self, method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:
        answer = self.server.handle(
            json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}).encode()
        )
        assert answer is not None
        self.assertTrue(answer.endswith(b"\n") and answer.count(b"\n") == 1)
        decoded: dict[str, Any] = json.loads(answer)
        self.assertEqual(decoded["id"], id)
        return decoded

    def initialize(self, version: str = VERSIONS[-1]) -> dict[str, Any]:
        result: dict[str, Any] = self.say("initialize", {"protocolVersion": version, "capabilities": {}})["result"]
        return result

    def test_each_known_version_is_spoken_and_others_get_the_newest(self) -> None:
        for version in VERSIONS:
            self.setUp()
            self.assertEqual(self.initialize(version)["protocolVersion"], version)
        self.setUp()
        self.assertEqual(self.initialize("2099-01-01")["protocolVersion"], "2025-11-25")

    def test_only_ping_is_answered_before_initialize_which_comes_once(self) -> None:
        self.assertEqual(self.say("ping")["result"], {})
        self.assertEqual(self.say("tools/list")["error"]["code"], -32600)
        self.initialize()
        self.assertEqual(self.say("initialize")["error"]["code"], -32600)
        self.assertEqual(len(self.say("tools/list")["result"]["tools"]), len(DEFINITIONS))

    def test_unknown_methods_tools_and_arguments(self) -> None:
        self.initialize()
        self.assertEqual(self.say("resources/list")["error"]["code"], -32601)
        self.assertEqual(self.say("server/discover")["error"]["code"], -32601)
        self.assertEqual(self.say("tools/call", {"name": "rm"})["error"]["code"], -32602)
        self.assertEqual(self.say("tools/call", {"name": "read_file", "arguments": [1]})["error"]["code"], -32602)
        wrong = self.say("tools/call", {"name": "read_file", "arguments": {"pth": "x"}})["result"]
        self.assertTrue(wrong["isError"])
        self.assertIn("unknown argument 'pth'", wrong["content"][0]["text"])

    def test_ids_keep_type_and_value(self) -> None:
        for identifier in (2**63 - 1, "", "é" * 500, 0, "7"):
            self.say("ping", id=identifier)

    def test_notifications_and_answers_get_no_answer(self) -> None:
        for line in (
            b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
            b'{"jsonrpc":"2.0","method":"no/such"}',
            b'{"jsonrpc":"2.0","id":5,"result":{"roots":[{"uri":"file:///etc"}]}}',
        ):
            self.assertIsNone(self.server.handle(line))

    def test_garbage_is_answered_and_the_server_lives(self) -> None:
        for line, code in [
            (b"{", -32700),
            (b"\xff\xfe", -32700),
            (b"[]", -32600),
            (b"7", -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"id":1,"method":"ping"}', -32600),
            (b"[" * 100_000, -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602),
        ]:
            answer = self.server.handle(line)
            assert answer is not None, line[:60]
            self.assertEqual(json.loads(answer)["error"]["code"], code, line[:60])
        answer = self.server.handle(TOO_LONG)
        assert answer is not None
        self.assertEqual(json.loads(answer)["error"]["code"], -32600)
        self.assertEqual(self.say("ping")["result"], {})

    @given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
    def test_no_line_breaks_it(self, line: bytes) -> None:
        answer = self.server.handle(line)
        self.assertTrue(answer is None or "error" in json.loads(answer))

    @settings(max_examples=60, deadline=None)
    @given(
        st.sampled_from([each["name"] for each in DEFINITIONS]),
        st.dictionaries(
            st.sampled_from(["path", "paths", "content", "edits", "head", "pattern", "source", "destination", "zz"]),
            st.recursive(
                st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            ),
        ),
    )
    def test_no_arguments_break_it(self, name: str, arguments: dict[str, Any]) -> None:
        if "path" in arguments:
            arguments["path"] = (
                f"/nowhere/{arguments['path']}" if isinstance(arguments["path"], str) else arguments["path"]
            )
        if not self.server._ready:
            self.initialize()
        answer = self.say("tools/call", {"name": name, "arguments": arguments})
        self.assertTrue("content" in answer.get("result", {}) or answer["error"]["code"] in (-32602, -32600), answer)


class MissingRootTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Path(os.path.realpath(directory.name))

    def test_directory_that_cannot_be_opened_is_left_out_and_named(self) -> None:
        (self.place / "file").touch()
        for missing in ("/nonexistent", "/dev/null", str(self.place / "file"), str(self.place / "file" / "below")):
            roots = Roots([str(self.place), missing, "/usr"])
            self.assertEqual([root.path for root in roots.all], [str(self.place), "/usr"])
            (line,) = roots.missing
            self.assertTrue(line.startswith(f"{missing}: "))
            roots.close()

    def test_first_directory_must_exist(self) -> None:
        error = self.assertRaises(Unavailable, Roots, [str(self.place / "missing"), "/usr"])
        self.assertIn("give an existing directory", str(error))


class CommandLineTests(SynchronousTestCase):
    def test_directories_with_and_without_the_option(self) -> None:
        self.assertEqual(directories(["a", "--root", "b", "--root=c"]), ["a", "b", "c"])

    def test_no_directory_and_unknown_options_are_refused(self) -> None:
        for wrong in ([], ["--root"], ["--root="], ["--rot", "a"], ["-x"]):
            self.assertRaises(UsageError, directories, wrong)

    def test_an_account_comes_first(self) -> None:
        self.assertEqual(account_of(["--account=1:23", "a"]), ((1, 23), ["a"]))
        for none in ([], ["a"], ["a", "--account=1:2"]):
            self.assertEqual(account_of(none), (None, none))
        for wrong in ("", "1", "1:", "-1:1", "1:2:3", "a:b", "1:\u0661", "1:2\n"):
            self.assertRaises(UsageError, account_of, ["--account=" + wrong, "a"])


def run(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": REPOSITORY}
    return subprocess.run([*COMMAND, *arguments], input=data, capture_output=True, timeout=60, env=environment)


def each_tool(directory: str) -> list[bytes]:
    """:returns: the lines of a conversation that calls every tool with success, and reads what may be closed."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "a.txt", "content": "one\ntwo\n"}),
        ("edit_file", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "three"}]}),
        ("read_text_file", {"path": "a.txt", "head": 1}),
        ("read_file", {"path": "a.txt"}),
        ("read_media_file", {"path": "a.txt"}),
        ("read_multiple_files", {"paths": ["a.txt", "b.txt"]}),
        ("create_directory", {"path": "c/d"}),
        ("list_directory", {"path": directory}),
        ("list_directory_with_sizes", {"path": directory}),
        ("directory_tree", {"path": directory}),
        ("move_file", {"source": "c/d", "destination": "e"}),
        ("search_files", {"path": directory, "pattern": "*.txt"}),
        ("get_file_info", {"path": "a.txt"}),
        ("list_allowed_directories", {}),
        ("delete_directory", {"path": "e"}),
        ("write_file", {"path": "f.txt", "content": ""}),
        ("delete_file", {"path": "f.txt"}),
    ]
    assert {name for name, _ in calls} == {each["name"] for each in DEFINITIONS}
    calls.append(("read_file", {"path": "closed"}))
    hello = ("initialize", {"protocolVersion": VERSIONS[-1], "capabilities": {}})
    messages = [hello, *(("tools/call", {"name": name, "arguments": given}) for name, given in calls)]
    return [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"
        for number, (method, params) in enumerate(messages)
    ]


class ProcessTests(TestCase):
    def test_lines_in_any_form_are_answered_until_input_ends(self) -> None:
        ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
        with TemporaryDirectory() as directory:
            done = run([directory], ping % 1 + b"\r\n\n\n" + ping % 2 + b"\nnonsense\n" + ping % 3)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual([json.loads(line)["id"] for line in done.stdout.splitlines()], [1, 2, None])

    def test_start_errors_are_one_sentence(self) -> None:
        done = run(["/no/such/directory"], b"")
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (69, 1))
        self.assertEqual(run([], b"").returncode, 64)

    def test_it_imports_nothing_heavy(self) -> None:
        code = (
            "import sys; from ironcurtain.servers.files import __main__;"
            "print([m for m in ('twisted', 'mcp', 'asyncio', 'socket', 'subprocess', 'argparse') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=REPOSITORY, check=True)
        self.assertEqual(done.stdout.strip(), b"[]")

    def test_another_account_works_where_it_could_not_go(self) -> None:
        """Below a directory of root's, with files as its own; and it reads no file of root's."""
        if os.geteuid():
            raise SkipTest("only root can become somebody else")
        with TemporaryDirectory() as top:
            inside = Path(top, "inside")
            inside.mkdir(mode=0o700)
            (inside / "closed").touch(mode=0o600)
            os.chown(inside, 4242, 4243)
            said = self.talk([f"--account={4242}:{4243}", str(inside)], each_tool(str(inside)))
            made = (inside / "a.txt").stat()
            self.assertEqual((made.st_uid, made.st_gid), (4242, 4243))
        self.assertEqual([answer["isError"] for answer in said[:-1]], [False] * (len(said) - 1), said)
        self.assertIn("permission denied", str(said[-1]))

    def test_an_account_that_cannot_be_had(self) -> None:
        for account in ["4294967295:0", "9999999999:1"] if os.geteuid() == 0 else ["0:0"]:
            with TemporaryDirectory() as directory:
                done = run([f"--account={account}", directory], b"")
            self.assertEqual((done.returncode, done.stdout), (64, b""))
            self.assertIn(b"cannot become", done.stderr)

    def test_what_is_imported_later_is_listed(self) -> None:
        """Whoever becomes another account imports it before, since the files may be closed to that one."""
        with TemporaryDirectory() as directory:
            code = (
                "import sys\n"
                "from importlib import import_module\n"
                "from ironcurtain.servers.files import __main__ as main\n"
                "[import_module(name) for name in main.LATER]\n"
                "before = set(sys.modules)\n"
                "main.main(sys.argv[1:])\n"
                "print(set(sys.modules) - before, file=sys.stderr)\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", code, directory],
                input=b"".join(each_tool(directory)),
                capture_output=True,
                cwd=REPOSITORY,
                check=True,
            )
        self.assertEqual(done.stderr, b"set()\n")

    def talk(self, arguments: list[str], lines: list[bytes]) -> list[dict[str, Any]]:
        done = run(arguments, b"".join(lines))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return [json.loads(line)["result"] for line in done.stdout.splitlines()][1:]

    def test_the_sdk_client_drives_it(self) -> Deferred[None]:
        import asyncio

        return Deferred.fromFuture(asyncio.ensure_future(self._drive()))

    async def _drive(self) -> None:
        from mcp import Client, StdioServerParameters

        with TemporaryDirectory() as directory:
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": REPOSITORY}
            server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], directory], env=environment)
            async with Client(server) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                self.assertEqual(names, {each["name"] for each in DEFINITIONS})
                written = await client.call_tool("write_file", {"path": "a.txt", "content": "hello\n"})
                self.assertFalse(written.is_error)
                edit = {"path": "a.txt", "edits": [{"oldText": "hello", "newText": "goodbye"}]}
                edited = await client.call_tool("edit_file", edit)
                self.assertIn(r"-hello\n+goodbye", str(edited.content[0]))
                missing = await client.call_tool("read_file", {"path": "b.txt"})
                self.assertTrue(missing.is_error)
                self.assertIn("no such file", str(missing.content[0]))
            self.assertEqual(Path(directory, "a.txt").read_text(), "goodbye\n")
