"""Servers that npx and uvx bring: downloaded once with the network, and run without."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.downloads import Place, install, installed
from ironcurtain.mcp_proxy.launch import Ground
from ironcurtain.mcp_proxy.needed_download import DONE, Download, download_of
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.gateway import WayOut
from ironcurtain.sandbox import bubblewrap
from tests.http.direct import DIRECT
from tests.mcp_proxy.test_protocol import Base
from tests.programs import program

reactor: Any = _reactor

EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"


def server(*words: str) -> CommandServer:
    return CommandServer("mine", words[0], words[1:])


class WordsTests(SynchronousTestCase):
    def test_what_is_downloaded(self) -> None:
        for words, expected in (
            (("npx", "-y", "@a/b@1.2", "x", "-y"), Download("npx", "@a/b@1.2", "", ("x", "-y"))),
            (("/opt/bin/npx", "pkg"), Download("npx", "pkg", "", ())),
            (("npx", "-y", "--package=pkg", "cmd", "1"), Download("npx", "pkg", "cmd", ("1",))),
            (("npx", "-p", "pkg", "--", "cmd"), Download("npx", "pkg", "cmd", ())),
            (("uvx", "mcp-server-time", "--x"), Download("uvx", "mcp-server-time", "mcp-server-time", ("--x",))),
            (("uvx", "tool@1.0"), Download("uvx", "tool@1.0", "tool", ())),
            (("uvx", "--from", "pkg==2", "cmd"), Download("uvx", "pkg==2", "cmd", ())),
            (("uv", "tool", "run", "tool"), Download("uvx", "tool", "tool", ())),
        ):
            self.assertEqual(download_of(server(*words)), expected, words)

    def test_what_is_not_understood_is_run_as_it_is(self) -> None:
        for words in (
            ("node", "x.js"), ("npx",), ("npx", "-y"), ("npx", "--prefix", "/", "x"), ("npx", "./here"),
            ("uvx", "../x"),
            ("npx", "git+https://example.org/x"), ("npx", "-c", "id"), ("uvx", "--with", "x", "y"), ("uv", "run", "x"),
            ("npx", "-p", "pkg", "../cmd"), ("npx", "file:/etc"),
        ):  # fmt: skip
            self.assertIsNone(download_of(server(*words)), words)


class InstallTests(Base):
    def setUp(self) -> None:
        super().setUp()
        if (problem := bubblewrap.available()) is not None:
            raise SkipTest(problem)
        program("npm")
        self.place = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, self.place)

    async def test_a_server_of_npm_runs_without_the_network(self) -> None:
        environ = {**os.environ, "HOME": "/nonexistent"}
        bench = await self.bench(
            server("npx", "-y", EVERYTHING, "stdio"),
            annotate={"echo": {"message": ("none",)}},
            ground=lambda ground: Ground(environ, ground.workspace, downloads=self.place),
        )
        await bench.proxy.gate.settled(250)
        agent = await bench.agent()
        answer = await agent.call("mine__echo", {"message": "from npm"})
        self.assertEqual(answer["result"]["content"][0]["text"], "Echo: from npm")
        (directory,) = self.place.glob("npx-*")
        self.assertTrue((directory / DONE).exists())

    def test_package_that_lies_about_its_command_is_refused(self) -> None:
        wanted = download_of(server("npx", "-y", "toy@1.0.0"))
        assert wanted is not None
        directory = self.place / wanted.key
        package = directory / "node_modules" / "toy" / "package.json"
        package.parent.mkdir(parents=True)
        (directory / DONE).write_text(wanted.package)
        place = Place(self.place, os.environ)
        for content in (b"", b"\xff", b"[" * 100_000, b"null", b"[]", b'{"bin": {"../../x": "y"}}'):
            package.write_bytes(content)
            error = self.assertRaises(Unavailable, installed, wanted, server("npx"), place)
            self.assertIn("command", str(error))
        package.write_bytes(b'{"bin": "x"}')
        self.assertTrue(installed(wanted, server("npx"), place)[0].command.endswith("/.bin/toy"))

    async def test_what_cannot_be_had_is_said(self) -> None:
        wanted = download_of(server("npx", "-y", "is-number@99.0.0"))
        assert wanted is not None
        way_out = WayOut(reactor, Dialer(reactor, reactor.nameResolver, DIRECT))
        place = Place(self.place, os.environ)
        installing = Deferred.fromCoroutine(install(wanted, server("npx"), place, reactor, way_out, print))
        error = await self.assertFailure(installing, Unavailable)
        self.assertIn("is-number@99.0.0 could not be installed", str(error))
        self.assertIn("No matching version", str(error))
        self.assertEqual([path.name for path in self.place.glob(f"*/{DONE}")], [])
