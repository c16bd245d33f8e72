"""
What it costs to share a terminal: bulk output, a viewer that does not read, redraws, many sessions.

Everything is measured in this process, where hubs live in the product too; programs, and the process of the screen
models, are others. Each part has its floor, taken in turns with it, and prints a table::

    python -m benchmarks.terminal [--part bulk --part stalled --part redraw --part many] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.asyncioreactor import install

install()

from twisted.internet import reactor as the_reactor  # noqa: E402
from twisted.internet.defer import Deferred, DeferredList  # noqa: E402
from twisted.internet.task import deferLater, react  # noqa: E402

from benchmarks.sizes import parse  # noqa: E402
from benchmarks.terminal_ends import Dropped, One, OneContainer, Source, Viewer  # noqa: E402
from ironcurtain.container.terminal import MARK, ContainerTerminal  # noqa: E402
from ironcurtain.terminal.attachment import Attachment  # noqa: E402
from ironcurtain.terminal.hub import Hub  # noqa: E402
from ironcurtain.terminal.model import Mode, ProgramExit, ScreenModel  # noqa: E402
from ironcurtain.terminal.pty import LocalPty  # noqa: E402
from ironcurtain.terminal.screen import RingScreen, Screens  # noqa: E402

reactor: Any = the_reactor
screens = Screens(reactor)

COLUMNS, ROWS = 200, 50
MEGABYTE = 1_000_000
KEY_SECONDS = 0.05
"""How fast people type who type fast."""

WRITER = "import os\nfor piece in iter(lambda: os.read(0, 4096), b''): os.write(1, piece)"
"""Writes in such pieces as a terminal gives them."""

LINES = b"".join(
    b"\x1b[3%dm%6d\x1b[0m a line of output of a program, as wide as lines usually are: %d\r\n" % (i % 8, i, i * i)
    for i in range(2000)
)
SCREEN = (
    b"\x1b[?25l\x1b[H"
    + "".join(
        f"\x1b[{row};1H\x1b[48;5;{row}m \x1b[0m│ {'text ' * 12}\x1b[1m→ word {row}\x1b[0m"
        f"\x1b[{row};190H\x1b[3{row % 8}m│end\x1b[0m"
        for row in range(1, ROWS + 1)
    ).encode()
)
CONTENTS = {
    "lines, with a thousand that scrolled off": LINES,
    "a full-screen program": b"\x1b[?1049h" + SCREEN,
    "the same over lines": LINES + b"\x1b[?1049h" + SCREEN,
}


def used(pid: int | None = None) -> float:
    """:returns: processor seconds of a process so far (proc(5)); of this one unless said."""
    if pid is None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def memory() -> float:
    """:returns: how much memory this process has, in megabytes (proc(5): ``statm``)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MEGABYTE


def worker() -> int | None:
    """:returns: the process of the screen models, if there is one."""
    process = screens.process
    return None if process is None or process.gone else process.pid


def percentiles(taken: Sequence[float]) -> tuple[float, float]:
    """:returns: the 50th and the 99th, in milliseconds."""
    return 1e3 * statistics.median(taken), 1e3 * statistics.quantiles(taken, n=100)[98]


def row(name: str, *cells: float | str, end: str = "") -> None:
    """Print one line of a table."""
    print(f"{name:<44}" + "".join(f"{cell:>11}" if isinstance(cell, str) else f"{cell:11.2f}" for cell in cells) + end)


def verdict(value: float, goal: float, unit: str) -> str:
    """:returns: whether a goal is reached."""
    return f"   {'within' if value <= goal else 'OVER'} {goal:g} {unit}"


async def open_hub(stream: Any, model: bool = True) -> Hub:
    """:returns: a hub, once its model works."""
    kept: ScreenModel = screens.open(COLUMNS, ROWS) if model else RingScreen()
    hub = Hub(stream, reactor, kept, (COLUMNS, ROWS))
    stream.owner = hub
    await hub.text()
    return hub


def look(hub: Hub, mode: Mode = Mode.DRIVE) -> tuple[Viewer, Attachment]:
    """:returns: a viewer."""
    viewer = Viewer()
    return viewer, hub.attach(viewer, mode, COLUMNS, ROWS)


def written(size: int, head: bytes = b"") -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """:returns: a socket over which so many bytes come, after these, and the process that writes them."""
    ours, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as file:
        file.write(head + (LINES * (size // len(LINES) + 1))[:size])
        file.seek(0)
        return ours, subprocess.Popen([sys.executable, "-S", "-c", WRITER], stdin=file, stdout=theirs.fileno())


def begin(source: Source, size: int) -> subprocess.Popen[bytes]:
    """Let a process write so many bytes over a socket; nothing is read of it before the reactor's next turn."""
    ours, process = written(size)
    with ours:
        ours.setblocking(False)
        reactor.adoptStreamConnection(ours.fileno(), socket.AF_UNIX, One(source))
    return process


async def bulk_once(size: int, model: bool | None, viewers: int) -> tuple[float, float, float]:
    """
    :param size: bytes of output.
    :param model: ``None``: not even a hub.
    :returns: megabytes a second, and processor milliseconds a megabyte here and in the process of the models.
    """
    source = Source()
    hub = await open_hub(source, model) if model is not None else None
    if hub is None:
        source.owner = Dropped()
    seen = [look(hub)[0] for _ in range(viewers)] if hub is not None else []
    await DeferredList([viewer.drawn for viewer in seen])
    process = begin(source, size)
    pid = worker()
    there, here, start = used(pid) if pid else 0.0, used(), time.perf_counter()
    await source.done
    took, here = time.perf_counter() - start, used() - here
    if hub is not None:
        await hub.text()
        there = used(pid) - there if pid else 0.0
        hub.ended(ProgramExit(0))
    assert all(viewer.size >= size for viewer in seen)
    process.wait()
    megabytes = size / MEGABYTE
    return megabytes / took, 1e3 * here / megabytes, 1e3 * there / megabytes


async def bulk(sizes: Namespace) -> None:
    """Output as fast as it comes."""
    ways: dict[str, tuple[bool | None, int]] = {
        "read and dropped (floor)": (None, 0),
        "hub that only remembers, one viewer": (False, 1),
        "hub with a model, one viewer": (True, 1),
        "hub with a model, 20 viewers": (True, 20),
    }
    results: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
    for _ in range(sizes.rounds):
        for way, (model, viewers) in ways.items():
            results[way].append(await bulk_once(sizes.megabytes * MEGABYTE, model, viewers))
    row(f"bulk, {sizes.megabytes} MB", "MB/s", "CPU ms/MB", "of models", "x floor")
    floor = statistics.median(result[0] for result in results["read and dropped (floor)"])
    for way, taken in results.items():
        speed, here, there = (statistics.median(column) for column in zip(*taken, strict=True))
        row(way, speed, here, there, speed / floor, end=verdict(here, 8, "ms") if ways[way][1] else "")


async def echoing() -> tuple[Hub, LocalPty]:
    """:returns: a hub whose program sends back what is typed."""
    pty = LocalPty(reactor, reactor)
    hub = await open_hub(pty)
    pty.spawn(["sh", "-c", "stty raw -echo; printf ready; exec cat"], dict(os.environ), "/", COLUMNS, ROWS)
    while not (await hub.text()).endswith("ready"):
        await deferLater(reactor, 0.01)
    return hub, pty


async def finish(*ptys: LocalPty) -> None:
    """End programs."""
    for pty in ptys:
        pty.kill()
    await DeferredList([pty.done for pty in ptys])


async def key(viewer: Viewer, attachment: Attachment) -> float:
    """:returns: seconds from one key to its echo."""
    viewer.drawn = Deferred()
    start = time.perf_counter()
    attachment.typed(b"x")
    await viewer.drawn
    return time.perf_counter() - start


async def keys(
    hub: Hub, count: int = 10_000, while_: Callable[[], bool] = lambda: True, pause: float = 0.002
) -> list[float]:
    """:returns: seconds that each key took to come back; of two at least, as many as percentiles need."""
    viewer, attachment = look(hub)
    await viewer.drawn
    taken: list[float] = []
    while (while_() or len(taken) < 2) and len(taken) < count:
        taken.append(await key(viewer, attachment))
        await deferLater(reactor, pause)
    attachment.detach()
    return taken


def watched(container: OneContainer, levels: list[float]) -> bool:
    """
    :param levels: gets how much memory there is now.
    :returns: whether more comes.
    """
    levels.append(memory())
    return not container.stream.ended.called


async def stalled(sizes: Namespace) -> None:
    """A viewer that does not read while a container floods; somebody in another session; another viewer of this one."""
    other, pty = await echoing()
    flood = 4 * sizes.megabytes * MEGABYTE
    row("a viewer that does not read", "p50 ms", "p99 ms", "x idle", "memory MB")
    for name, stalls in (("all read", False), ("one does not", True)):
        idle, busy, grown = [], [], []
        for _ in range(sizes.rounds):
            idle += await keys(other, sizes.keys)
            ours, process = written(flood, b"HTTP/1.1 101 UPGRADED\r\n\r\n" + MARK.encode() + b"\r\n")
            container: Any = OneContainer(reactor, ours)
            terminal = ContainerTerminal(container, COLUMNS, ROWS)
            hub = await open_hub(terminal)
            (first, _), (second, _) = look(hub), look(hub)
            await DeferredList([first.drawn, second.drawn])
            first.stalled = stalls
            levels = [memory()]
            await terminal.open("")
            busy += await keys(other, while_=partial(watched, container, levels))
            grown.append(max(levels) - levels[0])
            assert second.size >= flood
            hub.ended(ProgramExit(0))
            process.wait()
        (p50, p99), quiet = percentiles(busy), percentiles(idle)
        row("another session while nothing else happens", *quiet, 1)
        row(f"while output comes, {name}", p50, p99, p50 / quiet[0], max(grown), end=verdict(max(grown), 8, "MB"))
    await finish(pty)


async def redraw(sizes: Namespace) -> None:
    """A viewer comes: until it sees the screen."""
    row(f"redraw, {COLUMNS} x {ROWS}", "p50 ms", "p99 ms", "kB", "by ring ms")
    for name, output in CONTENTS.items():
        taken: list[float] = []
        floor: list[float] = []
        size = 0
        hub, ring = await open_hub(Source()), await open_hub(Source(), False)
        for number in range(10 * sizes.rounds):
            for one in (hub, ring):
                one.received(b"\x1b[?1049l" + output + b"\x1b[Hround %d" % number)
            await hub.text()
            for one, times in ((hub, taken), (ring, floor)):
                start = time.perf_counter()
                viewer, attachment = look(one)
                await viewer.drawn
                times.append(time.perf_counter() - start)
                attachment.detach()
                size = viewer.size if one is hub else size
        p50, p99 = percentiles(taken)
        row(name, p50, p99, size / 1000, percentiles(floor)[0], end=verdict(p50, 30, "ms"))
        hub.ended(ProgramExit(0))


async def many(sizes: Namespace) -> None:
    """Many sessions, many viewers, many comings and goings."""
    one, pty = await echoing()
    before = memory()
    others = [await echoing() for _ in range(sizes.sessions - 1)]
    grown = memory() - before
    hubs = [one, *(hub for hub, _ in others)]
    alone: list[float] = []
    together: list[float] = []
    spent = 0.0
    for _ in range(sizes.rounds):
        alone += await keys(one, sizes.keys, pause=KEY_SECONDS / 5)
        here = used()
        typing = []
        for hub in hubs:
            typing.append(Deferred.fromCoroutine(keys(hub, 30, pause=KEY_SECONDS)))
            await deferLater(reactor, KEY_SECONDS / len(hubs))
        for _, taken in await DeferredList(typing):
            together += taken
        spent += used() - here
    each = 1e6 * spent / len(together)
    one_key, every_key = percentiles(alone), percentiles(together)
    ratio = every_key[1] / one_key[1]
    row("keys in sessions", "p50 ms", "p99 ms", "p99 x one")
    row("in one", *one_key, 1)
    row(f"in {sizes.sessions}", *every_key, ratio, end=verdict(ratio, 3, "x"))
    print(f"a key and its echo: {each:.0f} us of processor time; a session: {grown / (sizes.sessions - 1):.2f} MB")
    seen = [look(hub, Mode.OBSERVE)[1] for hub in hubs for _ in range(4)]
    await deferLater(reactor, 2)
    here, start = used(), time.perf_counter()
    await deferLater(reactor, sizes.seconds)
    share = 100 * (used() - here) / (time.perf_counter() - start)
    print(f"{len(seen)} viewers while nothing happens: {share:.2f} % of a processor{verdict(share, 1, '%')}")
    before, files = memory(), len(os.listdir("/proc/self/fd"))
    for number in range(sizes.cycles):
        viewer, attachment = look(hubs[number % len(hubs)])
        await viewer.drawn
        attachment.detach()
    more = memory() - before
    print(f"{sizes.cycles} comings and goings: {len(os.listdir('/proc/self/fd')) - files} files, {more:.1f} MB more")
    await finish(pty, *(other for _, other in others))


PARTS: dict[str, Callable[[Namespace], Awaitable[None]]] = {
    "bulk": bulk,
    "stalled": stalled,
    "redraw": redraw,
    "many": many,
}


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--megabytes", type=int, default=32, help="of output (default 32)")
    parser.add_argument("--keys", type=int, default=300, help="keys a round (default 300)")
    parser.add_argument("--sessions", type=int, default=50, help="at the same time (default 50)")
    parser.add_argument("--cycles", type=int, default=1000, help="comings and goings of viewers (default 1000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="in which nothing happens (default 5)")
    options = parse(parser, rounds=1, megabytes=1, keys=10, sessions=2, cycles=10, seconds=0.1)

    async def run() -> None:
        for part in options.part or PARTS:
            await PARTS[part](options)
            print()

    react(lambda _: Deferred.fromCoroutine(run()))


if __name__ == "__main__":
    main()
