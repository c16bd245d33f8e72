"""
What sessions cost in memory, and whether any of it is kept when they have ended.

A daemon gets many sessions at once over its control API, each of which answers one message (those that take messages),
and the memory of its process is compared with that of a Twisted process that only listens, the floor. The same with our
file server for each session, whose processes count apart. Then sessions are started and ended one after the other, and
the memory is read now and then::

    python -m benchmarks.memory [--sessions 100] [--cycles 600]

The memory of the daemon is what it has resident. For the servers, which share most of their pages, each page is divided
by how many processes have it.

The bars: 1 MiB a session in the daemon, and less than 4 KiB for each session that has ended, once some hundred have.
Fifty ended sessions can still be looked at, and what older ones held is given back when Python next looks for it, which
it does the more seldom the more there is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.daemon import daemon
from benchmarks.session import call
from benchmarks.sizes import parse
from ironcurtain.codemode.pool import PROCESS_LIMIT
from tests.product import Product

SETTLED, STEP = 400, 100
"""From how many ended sessions on there is to be no growth, and how often the memory is read."""

FLOOR = """
from twisted.internet.asyncioreactor import install
install()
from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import Site
reactor.listenUNIX(%r, Site(Resource()))
reactor.callWhenRunning(print, "ready", flush=True)
reactor.run()
"""


def memory(pid: int, word: str) -> float:
    """:returns: MiB, as the kernel counts them under this word (proc(5), smaps_rollup); none of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except ProcessLookupError:
        return 0.0
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{word}:")) / 1024


def children(pid: int) -> list[int]:
    """:returns: the processes below one."""
    tasks = Path(f"/proc/{pid}/task")
    found = [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    return [each for child in found for each in (child, *children(child))]


@contextlib.contextmanager
def product(*, servers: bool) -> Iterator[Product]:
    """Give a person's home, with our file server for each session or without any server."""
    made = Product()
    try:
        made.home.mkdir(mode=0o700)
        if not servers:
            (made.home / "mcp-servers.json").write_text('{"mcpServers": {}}')
        made.script({"text": "Done."})
        yield made
    finally:
        made.close()


class Daemon:
    """One that runs."""

    def __init__(self, of: Product) -> None:
        self._product, self._socket = of, str(of.home / "run" / "daemon.sock")
        self.pid = int((of.home / "twistd.pid").read_text())
        self._sockets = 0

    @property
    def own(self) -> float:
        """MiB of its process."""
        return memory(self.pid, "Rss")

    @property
    def others(self) -> float:
        """MiB of the processes below it."""
        return sum(memory(pid, "Pss") for pid in children(self.pid))

    def start(self, kind: str) -> int:
        """:returns: the number of a session that is ready and has answered."""
        self._sockets += 1
        options = {"socket": str(self._product.home / "run" / f"{self._sockets}.sock")}
        if kind == "builtin":
            options = {"backend": f"scripted:{self._product.person / 'script.toml'}"}
        number = self._call("POST", "", {"kind": kind, "options": options})["number"]
        if kind == "builtin":
            self._call("POST", f"/{number}/messages", {"text": "Go on."})
        return int(number)

    def stop(self, number: int) -> None:
        """End a session."""
        self._call("DELETE", f"/{number}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(call(self._socket, method, f"/v1/sessions{path}", body))


@contextlib.contextmanager
def running(*, servers: bool) -> Iterator[Daemon]:
    """Give a daemon that had one session of each kind, so that all is imported."""
    with product(servers=servers) as made, daemon(made.home, made.environ):
        found = Daemon(made)
        for kind in ("builtin", "mcp-proxy"):
            found.stop(found.start(kind))
        yield found


def floor() -> float:
    """:returns: MiB of a Twisted process that serves nothing."""
    with tempfile.TemporaryDirectory() as directory:
        line = [sys.executable, "-c", FLOOR % f"{directory}/socket"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                return memory(process.pid, "Rss")
            finally:
                process.terminate()


def measure_many(count: int, row: Callable[[str, float, float, float], None]) -> None:
    """Measure sessions that live at the same time."""
    for kind, servers in (("mcp-proxy", False), ("builtin", False), ("builtin", True)):
        with running(servers=servers) as found:
            own, others = found.own, found.others
            if (kind, servers) == ("mcp-proxy", False):
                row("daemon without sessions", own, 0.0, 0.0)
            # Each built-in agent has an interpreter, of which a process has so many.
            many = count if kind == "mcp-proxy" else min(count, PROCESS_LIMIT)
            for _ in range(many):
                found.start(kind)
            name = f"{many} {kind} sessions{', a file server each' if servers else ''}"
            row(name, found.own, (found.own - own) * 1024 / many, (found.others - others) * 1024 / many)


def measure_ended(cycles: int) -> None:
    """Measure what is left of sessions that have ended."""
    print(f"\n{'sessions started and ended':<46}{'MiB':>8}{f'KiB each since {SETTLED}':>22}")
    for kind in ("mcp-proxy", "builtin"):
        with running(servers=False) as found:
            seen: dict[int, float] = {}
            for number in range(1, cycles + 1):
                found.stop(found.start(kind))
                if number % STEP == 0:
                    seen[number] = found.own
                    since = number - SETTLED
                    grown = f"{(seen[number] - seen[SETTLED]) * 1024 / since:.2f}" if since > 0 else ""
                    print(f"{f'{number} {kind}':<46}{seen[number]:8.1f}{grown:>22}")


def main() -> None:
    """Measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100, help="sessions at the same time (default 100)")
    parser.add_argument("--cycles", type=int, default=600, help="sessions one after the other (default 600)")
    options = parse(parser, sessions=1, cycles=1)
    base = floor()

    def row(name: str, mib: float, each: float, server: float) -> None:
        print(f"{name:<46}{mib:8.1f}{mib / base:9.2f}{each:14.0f}{server:20.0f}")

    print(f"{'':<46}{'MiB':>8}{'x floor':>9}{'KiB a session':>14}{'KiB beside it':>20}")
    row("a Twisted process that listens (floor)", base, 0.0, 0.0)
    measure_many(options.sessions, row)
    measure_ended(options.cycles)


if __name__ == "__main__":
    main()
