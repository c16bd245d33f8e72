"""Where agents come in."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.layout import SOCKET_PATH_LIMIT
from tests.mcp_proxy.support import HELLO, until
from tests.mcp_proxy.test_protocol import Base


class UnixTests(Base):
    """UNIX sockets."""

    async def test_a_stale_socket_is_removed(self) -> None:
        bench = await self.bench()
        stale = bench.top / "run" / "stale.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(stale))
        await bench.proxy.listen(stale)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(stale))

    async def test_a_socket_in_use_is_not_taken(self) -> None:
        bench = await self.bench()
        with self.assertRaises(Unavailable):
            await bench.proxy.listen(bench.socket)
        await bench.agent()

    async def test_other_things_are_not_removed(self) -> None:
        bench = await self.bench()
        file = bench.top / "run" / "file"
        for make in (lambda: file.write_text("x"), lambda: file.symlink_to("/dev/null")):
            make()
            with self.assertRaises(Unavailable):
                await bench.proxy.listen(file)
            file.unlink()

    async def test_a_long_path_is_named(self) -> None:
        bench = await self.bench()
        path = bench.top / ("x" * SOCKET_PATH_LIMIT)
        with self.assertRaises(ConfigurationError) as caught:
            await bench.proxy.listen(path)
        self.assertIn(str(path), str(caught.exception))

    async def test_a_directory_of_everybody_is_refused(self) -> None:
        bench = await self.bench()
        (bench.top / "open").mkdir()
        (bench.top / "open").chmod(0o777)
        with self.assertRaises(Unavailable):
            await bench.proxy.listen(bench.top / "open" / "x.sock")


class StdioTests(Base):
    """Standard input and output."""

    async def test_an_agent_at_two_pipes(self) -> None:
        bench = await self.bench()
        await bench.proxy.gate.settled(60)
        (their_input, our_output), (our_input, their_output) = os.pipe(), os.pipe()
        got = bytearray()
        served = bench.proxy.serve_stdio(our_input, our_output)
        for descriptor in (their_input, our_output, our_input):
            self.addCleanup(os.close, descriptor)
        messages: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": HELLO},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "fake__big", "arguments": {"size": 500_000}}},
        ]
        for message in messages:
            os.write(their_output, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        os.close(their_output)  # as in: printf ... | ironcurtain mcp-proxy

        os.set_blocking(their_input, False)

        def came() -> bool:
            with contextlib.suppress(BlockingIOError):
                got.extend(os.read(their_input, 1024 * 1024))
            return got.count(b"\n") == 2

        await until(came, "both answers")
        await served
        answers = [json.loads(line) for line in bytes(got).splitlines()]
        self.assertEqual([answer["id"] for answer in answers], [1, 2])
        self.assertEqual(len(answers[1]["result"]["content"][0]["text"]), 500_000)
