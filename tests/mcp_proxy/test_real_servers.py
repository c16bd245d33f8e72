"""Real servers behind, real clients in front."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters, stdio_client
from mcp.client.client import Client
from twisted.internet.defer import Deferred
from twisted.internet.utils import getProcessOutputAndValue

from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy.envelope import MODERN_VERSION
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, ServerConfig
from ironcurtain.mcp_proxy.session import NEWEST_VERSION
from ironcurtain.policy.rules import Conditions, Rule
from ironcurtain.secrets.redaction import Secret
from ironcurtain.services.asyncio_bridge import from_asyncio
from tests.machine import demand_sandbox
from tests.mcp_proxy.npm import module
from tests.mcp_proxy.support import Bench, fake_server, the_reactor, until
from tests.mcp_proxy.test_calls import text
from tests.mcp_proxy.test_protocol import Base
from tests.ports import free_port
from tests.programs import program

PUMP = Path(__file__).with_name("pump.py")
SCOPE = "@modelcontextprotocol"
"""Of the MCP project's packages."""


ANNOTATIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "get_current_time": {"timezone": ("none",)},
    "convert_time": {name: ("none",) for name in ("source_timezone", "time", "target_timezone")},
    "git_status": {"repo_path": ("read-path",)},
    "git_log": {
        "repo_path": ("read-path",),
        **{name: ("none",) for name in ("max_count", "start_timestamp", "end_timestamp")},
    },
    "fetch": {"url": ("fetch-url",), **{name: ("none",) for name in ("max_length", "start_index", "raw")}},
}


def installed(name: str) -> ServerConfig:
    """:returns: a server from a package that is installed for tests."""
    return CommandServer(name.removeprefix("mcp-server-"), str(Path(sys.executable).parent / name))


class RealTests(Base):
    """Servers of other people."""

    def setUp(self) -> None:
        super().setUp()
        demand_sandbox()

    async def real(self, *servers: ServerConfig, **options: Any) -> Bench:
        """:returns: a proxy whose servers are all up."""
        bench = await self.bench(*servers, annotate=ANNOTATIONS, **options)
        await bench.proxy.gate.settled(60)
        return bench

    def client(self, bench: Bench, mode: str) -> Client:
        """:returns: the SDK's client, joined to the proxy's socket as an agent is."""
        command = StdioServerParameters(command=sys.executable, args=["-S", str(PUMP), str(bench.socket)])
        return Client(stdio_client(command), mode=mode)

    async def test_the_sdks_client_with_and_without_a_handshake(self) -> None:
        bench = await self.real(installed("mcp-server-time"), fake_server())

        async def use(mode: str) -> tuple[str, list[str], Any]:
            async with self.client(bench, mode) as client:
                tools = await client.list_tools()
                answer = await client.call_tool("time__get_current_time", {"timezone": "UTC"})
                resources = await client.list_resources()
                prompts = await client.list_prompts()
                assert str(resources.resources[0].uri) == "test://static"
                assert [p.name for p in prompts.prompts] == ["fake__greet"]
                return client.protocol_version, [tool.name for tool in tools.tools], answer

        for mode, revision in (("auto", MODERN_VERSION), ("legacy", NEWEST_VERSION), (MODERN_VERSION, MODERN_VERSION)):
            spoken, names, answer = await from_asyncio(use(mode))
            self.assertEqual(spoken, revision)
            self.assertEqual(names[:2], ["time__get_current_time", "time__convert_time"])
            self.assertFalse(answer.is_error)
            self.assertEqual(json.loads(answer.content[0].text)["timezone"], "UTC")

    async def test_time_says_why_it_failed(self) -> None:
        bench = await self.real(installed("mcp-server-time"))
        agent = await bench.agent()
        answer = await agent.call("time__get_current_time", {"timezone": "Nowhere/At_all"})
        self.assertTrue(answer["result"]["isError"])
        self.assertEqual(bench.records("outcome")[0]["status"], "error")

    async def test_git_in_the_workspace(self) -> None:
        bench = await self.real(installed("mcp-server-git"))
        subprocess.run(["git", "init", "-q", str(bench.workspace / "repo")], check=True)
        agent = await bench.agent()
        answer = await agent.call("git__git_status", {"repo_path": "/workspace/repo"})
        self.assertIn("No commits yet", answer["result"]["content"][0]["text"])
        self.assertEqual(bench.records("call")[0]["rule"], "structural-sandbox-allow")

    async def test_fetch_is_asked_for(self) -> None:
        rule = Rule("web", Conditions(server=("fetch",)), "deny", "no web in tests")
        bench = await self.real(installed("mcp-server-fetch"), rules=[rule])
        agent = await bench.agent()
        answer = await agent.call("fetch__fetch", {"url": "http://localhost:1/"})
        self.assertEqual(answer["result"]["_meta"]["ironcurtain/rule"], "web")

    async def test_our_own_file_server(self) -> None:
        annotate = {"read_text_file": {"path": ("read-path",), "head": ("none",), "tail": ("none",)}}
        environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
        server = CommandServer("filesystem", sys.executable, ("-m", "ironcurtain.servers.files", "."), environment)
        bench = await self.bench(server, annotate=annotate)
        await bench.proxy.gate.settled(60)
        (bench.workspace / "notes.txt").write_text("remember")
        agent = await bench.agent()
        answer = await agent.call("filesystem__read_text_file", {"path": "/workspace/notes.txt"})
        self.assertEqual(answer["result"]["content"][0]["text"], "remember")
        for escape in ("/etc/passwd", "../../etc/passwd"):
            answer = await agent.call("filesystem__read_text_file", {"path": escape})
            self.assertTrue(answer["result"]["isError"])

    async def test_the_inspector(self) -> None:
        inspector = str(module(SCOPE, "inspector", "cli", "build", "cli.js"))
        everything, files = (
            str(module(SCOPE, f"server-{name}", "dist", "index.js")) for name in ("everything", "filesystem")
        )
        node = program("node")
        bench = await self.real(
            installed("mcp-server-time"),
            fake_server(),
            CommandServer("everything", node, (everything,)),
            CommandServer("npm", node, (files, ".")),
        )

        async def inspect(*arguments: str) -> Any:
            command = [inspector, "--cli", sys.executable, str(PUMP), str(bench.socket), "--method", *arguments]
            output, errors, status = await getProcessOutputAndValue(
                node, command, dict(os.environ), reactor=the_reactor
            )
            self.assertEqual(status, 0, errors.decode())
            return json.loads(output)

        self.assertEqual(len((await inspect("tools/list"))["tools"]), len(bench.proxy.gate.tools()))
        self.assertGreater(len((await inspect("resources/list"))["resources"]), 3)
        self.assertGreater(len((await inspect("prompts/list"))["prompts"]), 1)
        call = ("tools/call", "--tool-name", "time__get_current_time", "--tool-arg", "timezone=UTC")
        self.assertFalse((await inspect(*call))["isError"])

    async def test_a_server_of_other_people_behind_http(self) -> None:
        everything = module(SCOPE, "server-everything", "dist", "index.js")
        port = free_port()
        command = [program("node"), str(everything), "streamableHttp"]
        server = subprocess.Popen(command, env={**os.environ, "PORT": str(port)}, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        way = HttpServer("everything", Secret(f"http://127.0.0.1:{port}/mcp"))
        bench = await self.bench(way, annotate={"echo": {"message": ("none",)}})
        await until(lambda: bool(bench.proxy.gate.tools()), "the server")
        agent = await bench.agent()
        answer = await agent.call("everything__echo", {"message": "over HTTP"})
        self.assertEqual(text(answer), "Echo: over HTTP")
        while len((await agent.request("resources/list"))["result"]["resources"]) <= 3:
            continue  # they are known some time after the tools are

    async def test_everything_asks_a_person_and_the_model(self) -> None:
        everything = module(SCOPE, "server-everything", "dist", "index.js")
        names = ("trigger-elicitation-request", "trigger-url-elicitation", "trigger-sampling-request")
        way = CommandServer(
            *("everything", program("node"), (str(everything), "stdio")),
            cwd=".",
            sandbox=None,
            agent_requests=frozenset({"sampling"}),
        )
        given = dict.fromkeys(("url", "errorPath", "prompt", "maxTokens"), ("none",))
        bench = await self.bench(way, annotate=dict.fromkeys(names, given))
        agent = await bench.agent(capabilities={"sampling": {}})
        await until(lambda: bool(bench.proxy.gate.tools()), "the server")
        asked = Deferred.fromCoroutine(agent.call(f"everything__{names[0]}"))
        waiting = await bench.pending()
        assert waiting.request.form is not None
        kinds = {field.kind for field in waiting.request.form.fields}
        self.assertEqual(kinds, {"text", "number", "integer", "boolean", "choice", "choices"})
        bench.escalations.answer(waiting.number, {"name": "Ada Lovelace", "check": True, "email": "a@b.example"}, "ada")
        self.assertIn("Ada Lovelace", json.dumps(await asked))
        for through_error in (False, True):
            address = {"url": "https://a.example/x", "errorPath": through_error}
            asked = Deferred.fromCoroutine(agent.call(f"everything__{names[1]}", address))
            for _ in range(1 + through_error):
                waiting = await bench.pending()
                bench.escalations.answer(waiting.number, {}, "ada")
            self.assertNotIn("error", await asked)
        asked = Deferred.fromCoroutine(agent.call(f"everything__{names[2]}", {"prompt": "hi", "maxTokens": 10}))
        await bench.decide(Outcome.APPROVED)
        question = await agent.expect(lambda m: m.get("method") == "sampling/createMessage")
        answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello there"}}
        agent.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        self.assertIn("hello there", json.dumps(await asked))
