"""What servers reach whose sandboxes have a network."""

from __future__ import annotations

import socket
import sys

from twisted.internet.threads import deferToThread

from ironcurtain.mcp_proxy.servers_config import CommandServer, SandboxConfig
from ironcurtain.network.access import read_access
from ironcurtain.sandbox.spec import Kind, Sandbox
from tests.machine import demand_sandbox
from tests.mcp_proxy.support import until
from tests.mcp_proxy.test_protocol import Base
from tests.ports import closed_port

PROGRAM = """
import socket, sys
for port in sys.argv[1:]:
    try:
        with socket.create_connection(("localhost", int(port)), 10) as connected:
            answer = connected.recv(100).decode() or "closed"
    except OSError as e:
        answer = type(e).__name__
    print("port", port, answer, file=sys.stderr)
print("done", file=sys.stderr)
"""


class ServerNetworkTests(Base):
    """A server that connects to services of this machine."""

    async def said(self, network: list[str], *ports: int) -> list[str]:
        """:returns: what a server printed."""
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))
        config = SandboxConfig(access=read_access(network))
        words = ("-I", "-S", "-c", PROGRAM, *map(str, ports))
        bench = await self.bench(CommandServer("net", sys.executable, words, sandbox=config))
        await until(lambda: ("net", "done") in bench.errors, "the server's lines")
        self.records = [record for record in bench.records() if record.get("server") == "network"]
        return [line for _, line in bench.errors]

    async def test_only_listed_services_are_reached_and_each_connection_is_recorded(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listed, socket.create_server(("127.0.0.1", 0)) as other:
            ports = listed.getsockname()[1], other.getsockname()[1]
            listed.settimeout(20)

            def greet() -> None:
                with listed.accept()[0] as accepted:
                    accepted.sendall(b"hello")

            greeting = deferToThread(greet)
            lines = await self.said([f"localhost:{ports[0]}"], *ports)
            await greeting
        self.assertIn(f"port {ports[0]} hello", lines)
        self.assertIn(f"port {ports[1]} ConnectionRefusedError", lines)
        self.assertIn("structural-server-network", str(self.records))
        self.assertNotIn(str(ports[1]), str(self.records))

    async def test_a_service_that_is_not_there_resets_the_connection_and_the_log_says_so(self) -> None:
        port = closed_port(self)
        lines = await self.said([f"localhost:{port}"], port)
        self.assertIn(f"port {port} ConnectionResetError", lines)
        self.assertIn(f"IronCurtain: the connection to localhost:{port} cannot be made", str(lines))
