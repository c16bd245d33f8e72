"""
What a tool call costs: straight to a server, through a relay that understands nothing, and through the MCP proxy with
its policy and its audit log.

All three are measured in one run, in turns, with the same server behind them, so that a busy machine slows all alike::

    python -m benchmarks.tool_call [--calls 300] [--rounds 7]

The ratio to the relay is the one that counts: the goal is at most 1.6 for the median of a call.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
LARGE = 10 * 1024 * 1024
OPEN = 16
CHILD = [sys.executable, "-S", "-E", str(HERE), "--child"]


class Client:
    """A blocking client of one MCP server, over any stream socket."""

    def __init__(self, stream: socket.socket, tool: str) -> None:
        self._stream, self._tool, self._ids, self._rest = stream, tool, itertools.count(1), b""
        self._stream.settimeout(60)
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._request("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def call(self, size: int = 0) -> float:
        """:returns: seconds that one call took."""
        number = next(self._ids)
        arguments = {"message": f"message {number}", "size": size}
        start = time.perf_counter()
        self._send({"id": number, "method": "tools/call", "params": {"name": self._tool, "arguments": arguments}})
        line = self._line()
        took = time.perf_counter() - start
        assert b'"isError"' not in line and b'"error"' not in line, line[:500]
        return took

    def rate(self, calls: int) -> float:
        """:returns: calls a second, with several open at a time."""
        start, waiting = time.perf_counter(), 0
        for _ in range(calls):
            params = {"name": self._tool, "arguments": {"message": f"message {next(self._ids)}", "size": 0}}
            self._send({"id": next(self._ids), "method": "tools/call", "params": params})
            waiting += 1
            if waiting == OPEN:
                self._line()
                waiting -= 1
        for _ in range(waiting):
            self._line()
        return calls / (time.perf_counter() - start)

    def _request(self, method: str, params: dict[str, Any]) -> None:
        self._send({"id": next(self._ids), "method": method, "params": params})
        self._line()

    def _send(self, message: dict[str, Any]) -> None:
        self._stream.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _line(self) -> bytes:
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            parts.append(self._stream.recv(1024 * 1024))
            assert parts[-1], "the other side has gone"
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line


def child() -> None:
    """A server with one tool, which answers as fast as it can."""
    schema = {"type": "object", "properties": {"message": {"type": "string"}, "size": {"type": "integer"}}}
    tools: dict[str, Any] = {"tools": [{"name": "echo", "description": "echo", "inputSchema": schema}]}
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, result = message["method"], tools
        if method == "initialize":
            info = {"name": "bench", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/call":
            arguments = message["params"]["arguments"]
            result = {"content": [{"type": "text", "text": arguments["message"] + "x" * arguments["size"]}]}
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        sys.stdout.buffer.write(answer.encode() + b"\n")
        sys.stdout.buffer.flush()


def serve(top: Path) -> None:
    """The MCP proxy with the server behind it, a policy with rules, and an audit log on disk."""
    from twisted.internet.asyncioreactor import install

    install()
    from twisted.internet import reactor as the_reactor
    from twisted.internet.defer import Deferred, succeed
    from twisted.internet.threads import deferToThread

    from ironcurtain.audit.log import AuditLog
    from ironcurtain.escalation.queue import EscalationQueue, closing_numbers
    from ironcurtain.home.network_section import Network
    from ironcurtain.http.upstream_proxies import UpstreamProxies
    from ironcurtain.mcp_proxy.launch import Ground
    from ironcurtain.mcp_proxy.logins import LoginFiles
    from ironcurtain.mcp_proxy.pins import PinFiles
    from ironcurtain.mcp_proxy.proxy import McpProxy, McpSurroundings
    from ironcurtain.mcp_proxy.servers_config import CommandServer
    from ironcurtain.network.dialling import Dialer
    from ironcurtain.network.gateway import WayOut
    from ironcurtain.policy.annotations import Annotations, ServerAnnotations, ToolAnnotation
    from ironcurtain.policy.engine import PolicyEngine
    from ironcurtain.policy.pathmap import PathMap
    from ironcurtain.policy.rules import Conditions, Policy, Rule
    from ironcurtain.secrets.redaction import Redactor, Secret

    reactor: Any = the_reactor
    numbers, calls, redactor = itertools.count(1), itertools.count(1), Redactor([Secret("a-secret-of-this-session")])
    other = [Rule(f"other-{i}", Conditions(tool=(f"tool-{i}",)), "escalate") for i in range(30)]
    rules = (*other, Rule("echo", Conditions(server=("bench",), tool=("echo",)), "allow"))
    echo = ToolAnnotation("echo", {"message": ("none",), "size": ("none",)})
    paths = PathMap(str(top))
    annotations = Annotations({"bench": ServerAnnotations((echo,))})
    proxy = McpProxy(
        session_id="bench",
        servers=[CommandServer("bench", CHILD[0], tuple(CHILD[1:]), sandbox=None)],
        engine=PolicyEngine(Policy(rules), annotations, paths=paths, home="/home/nobody"),
        audit=AuditLog(top / "audit.jsonl", "bench", redactor, reactor, time.time, deferToThread),
        escalations=EscalationQueue(
            next_number=lambda: succeed(next(numbers)),
            new_id=lambda: os.urandom(8).hex(),
            clock=reactor,
            now=time.time,
            timeout=300.0,
            attended=lambda: True,
            next_closing=closing_numbers(time.time()),
        ),
        paths=paths,
        redactor=redactor,
        surroundings=McpSurroundings(
            reactor=reactor,
            ground=Ground(dict(os.environ), str(top)),
            secret_command=lambda command: succeed(Secret(command)),
            new_id=lambda: f"call-{next(calls)}",
            pins=PinFiles(top / "tool-definitions", time.time),
            logins=LoginFiles(top / "oauth"),
            proxies=(direct := UpstreamProxies(reactor, Network(), {})),
            tell=lambda sentence: None,
            server_down=lambda server, why: None,
            starting=lambda servers: None,
            log_line=lambda server, line: None,
            way_out=WayOut(reactor, Dialer(reactor, reactor.nameResolver, direct)),
        ),
        events=lambda event: None,
    )

    async def start() -> None:
        await proxy.start()
        await proxy.gate.settled(30)
        await proxy.listen(top / "ours.sock")

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(start()).addErrback(lambda f: f.printTraceback()))
    reactor.run()


@contextlib.contextmanager
def running(*command: str, stdin: int | None = None, stdout: int | None = None) -> Iterator[int]:
    """Run a program for a while; its process id is given."""
    with subprocess.Popen(command, stdin=stdin, stdout=stdout) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


def processor_seconds(pid: int) -> float:
    """:returns: what a process has used so far (proc(5): ``utime`` and ``stime`` in ticks); 0 for no process."""
    if not pid:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def connect(path: Path) -> socket.socket:
    """:returns: a connection to a socket that is there, or will be soon."""
    for _ in range(600):
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(str(path))
            return stream
        except OSError:
            stream.close()
            time.sleep(0.05)
    raise SystemExit(f"{path}: nobody listens")


def measure(clients: dict[str, Client], pids: dict[str, int], calls: int, rounds: int) -> None:
    """Measure in turns, and print a table."""
    used = dict.fromkeys(clients, 0.0)
    times: dict[str, list[float]] = {name: [] for name in clients}
    rates: dict[str, list[float]] = {name: [] for name in clients}
    large: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(rounds):
        for name, client in clients.items():
            before = processor_seconds(pids[name])
            times[name] += [client.call() for _ in range(calls)]
            used[name] += processor_seconds(pids[name]) - before
            rates[name].append(client.rate(calls))
            large[name].append(client.call(LARGE))
    rows = {
        name: (
            1e6 * statistics.median(times[name]),
            1e6 * statistics.quantiles(times[name], n=100)[98],
            1e6 * used[name] / len(times[name]),
            statistics.median(rates[name]),
            1e3 * statistics.median(large[name]),
        )
        for name in clients
    }
    print(f"{'':8}{'p50 us':>9}{'p99 us':>9}{'CPU us':>9}{f'{OPEN} open/s':>12}{'10 MiB ms':>11}   ratio to relay")
    for name, row in rows.items():
        ratios = " ".join(
            f"{mine / floor:.2f}" if floor else "-" for mine, floor in zip(row, rows["relay"], strict=True)
        )
        print(f"{name:8}{row[0]:9.0f}{row[1]:9.0f}{row[2]:9.0f}{row[3]:12.0f}{row[4]:11.1f}   {ratios}")


def main() -> None:
    """Measure all three."""
    from benchmarks.sizes import parse  # here, since the child runs without any directory of packages

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300, help="calls a round (default 300)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (default 7)")
    options = parse(parser, calls=10, rounds=1)
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        ours, theirs = socket.socketpair()
        os.environ["PYTHONPATH"] = str(HERE.parent.parent)
        with (
            running(*CHILD, stdin=theirs.fileno(), stdout=theirs.fileno()),
            running(sys.executable, str(HERE.with_name("relay.py")), str(top / "relay.sock"), *CHILD) as relay,
            running(sys.executable, str(HERE), "--serve", str(top)) as proxy,
        ):
            theirs.close()
            clients = {
                "direct": Client(ours, "echo"),
                "relay": Client(connect(top / "relay.sock"), "echo"),
                "ours": Client(connect(top / "ours.sock"), "bench__echo"),
            }
            measure(clients, {"direct": 0, "relay": relay, "ours": proxy}, options.calls, options.rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child()
    elif sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        main()
