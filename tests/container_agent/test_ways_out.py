"""What real programs in a sandbox reach: private hosts, and what stands behind a relay that one of them starts."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.container_agent.test_without_docker import IN_BUBBLEWRAP, demand
from tests.container_agent.worlds import ContainerTestCase, reactor
from tests.network.names import Names
from tests.network.own_network import enter_network
from tests.programs import program

PRIVATE = "10.213.8.1"
"""An address of the test's network, and of no other."""

POLICY = """version = 1
[[rules]]
name = "named"
if = {{ server = ["network"], tool = ["connect"], domains = {{ roles = ["proxy-domain"], allowed = [{allowed}] }} }}
then = "allow"
[[rules]]
name = "requests"
if = {{ server = ["network"], tool = ["request"] }}
then = "allow"
[[rules]]
name = "nothing-else"
if = {{ server = ["network"] }}
then = "deny"
"""


class Host(ThreadingHTTPServer):
    """
    A host that answers every request.

    :ivar asked: the paths of the requests.
    """

    def __init__(self, address: str) -> None:
        super().__init__((address, 0), _Handler)
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        """Answer."""
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "7")
        self.end_headers()
        self.wfile.write(b"inside\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


class WaysOutCase(ContainerTestCase):
    """A session in bubblewrap, whose script uses curl."""

    def setUp(self) -> None:
        demand()
        program("curl")
        super().setUp()

    def serve(self, address: str) -> Host:
        """:returns: a host that answers at a port of its own."""
        server = Host(address)
        Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def resolve_to(self, address: str) -> None:
        """Let all names have one address."""
        before = reactor.installNameResolver(Names(address))
        self.addCleanup(reactor.installNameResolver, before)

    async def begin(self, *allowed: str) -> None:
        """Start a session that may connect to some hosts."""
        self.home.path.mkdir(mode=0o700, exist_ok=True)
        self.home.policy.write_text(POLICY.format(allowed=", ".join(f'"{each}"' for each in allowed)))
        self.world = self.another()
        self.session = await self.start(options=IN_BUBBLEWRAP)


class PrivateHostTests(WaysOutCase):
    """Hosts in a private network, such as a company's: neither public nor this machine."""

    async def test_only_a_host_that_a_rule_names_is_reached_in_a_private_network(self) -> None:
        self.addCleanup(enter_network(f"{PRIVATE}/32"))
        port = self.serve(PRIVATE).server_port
        self.resolve_to(PRIVATE)
        await self.begin(f"named.test:{port}", f"*.other.test:{port}", f"{PRIVATE}:{port}")
        urls = [f"http://{host}:{port}/" for host in ("named.test", "an.other.test", PRIVATE, "10.213.8.2")]
        said = await self.say(self.session, *(f"curl -sS {url}" for url in urls))
        named, other, address, unnamed = said.splitlines()
        self.assertEqual((named, address), ("inside", "inside"))
        self.assertIn("IronCurtain: ", other)
        self.assertIn("not on the public", other)
        self.assertIn("IronCurtain: ", unnamed)


class RelayTests(WaysOutCase):
    """A program in the sandbox that passes connections of others on."""

    async def test_relay_reaches_no_more_than_what_uses_it(self) -> None:
        program("socat")
        host = self.serve("127.0.0.1")
        port = host.server_port
        self.resolve_to("127.0.0.1")
        await self.begin(f"named.test:{port}")
        relay, named = "http://127.0.0.1:18081", f"http://named.test:{port}/"
        said = await self.say(
            self.session,
            "proxy=${http_proxy#http://}; proxy=${proxy%/}",
            "socat TCP-LISTEN:18081,bind=127.0.0.1,fork TCP:$proxy 2>/dev/null &",
            f"socat TCP-LISTEN:18082,bind=127.0.0.1,fork TCP:203.0.113.1:{port} 2>/workspace/direct &",
            "for port in 18081 18082; do socat - TCP:127.0.0.1:$port,retry=200,interval=0.05 </dev/null; done",
            f"curl -sS -x {relay} http://other.test:{port}/",
            f"curl -sS -x {relay} {named}",
            f"curl -sS -x {relay} -H 'Connection: Upgrade' -H 'Upgrade: websocket' {named}",
            f"curl -sS -x {relay} --proxytunnel {named} 2>&1",
            "curl -sS --noproxy '*' http://127.0.0.1:18082/ 2>&1",
            "tail -1 /workspace/direct",
        )
        other, open_host, upgrade, tunnelled, directly, error = said.splitlines()
        self.assertIn(f"IronCurtain: the connection to other.test:{port} is refused", other)
        self.assertEqual(open_host, "inside")
        self.assertIn("IronCurtain: WebSocket connections are not passed on", upgrade)
        self.assertEqual((tunnelled, directly), ("curl: (52) Empty reply from server",) * 2)
        self.assertIn("Network is unreachable", error)
        self.assertEqual(host.asked, ["/"])
        asked = [record["arguments"] for record in self.audit(self.session, "call") if record["server"] == "network"]
        hosts = [(call["host"], call["party"]) for call in asked if "host" in call]
        self.assertEqual(hosts, [("other.test", "the agent"), ("named.test", "the agent")])
