"""
How long a call waits for an approval beyond the time that the person takes.

An approver that answers at once stands for the person. Measured is the way from the moment when the call asks, over the
news of it, the approval and its record on disk, to the moment when the call is released: in one process, from another
process through the control API, and from another process through the files; and from the moment when the call asks to
the one when a console, in the same process or in another, has drawn it. The bare round trip of a few bytes between two
processes over a UNIX socket, taken in the same run, is the floor::

    python -m benchmarks.escalation [--calls 500]
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twisted.internet.asyncioreactor import install

install()

from twisted.internet import reactor as the_reactor  # noqa: E402
from twisted.internet.defer import Deferred  # noqa: E402
from twisted.internet.task import deferLater, react  # noqa: E402
from twisted.internet.threads import deferToThreadPool  # noqa: E402

from benchmarks.sizes import parse  # noqa: E402
from ironcurtain.console.console import Console  # noqa: E402
from ironcurtain.control.client import ControlClient  # noqa: E402
from ironcurtain.control.listening import listen  # noqa: E402
from ironcurtain.escalation import EscalationRequest, Outcome, arguments_digest  # noqa: E402
from ironcurtain.escalation.grant import Binding  # noqa: E402
from ironcurtain.escalation.queue import closing_numbers  # noqa: E402
from ironcurtain.escalation.watcher import DirectoryWatcher  # noqa: E402
from ironcurtain.home.layout import Home  # noqa: E402
from ironcurtain.home.network_section import Network  # noqa: E402
from ironcurtain.home.registry import SessionRegistry  # noqa: E402
from ironcurtain.home.settings import Settings  # noqa: E402
from ironcurtain.http.upstream_proxies import UpstreamProxies  # noqa: E402
from ironcurtain.operations.api import LocalApi, ProcessApi, SessionApi  # noqa: E402
from ironcurtain.operations.home_source import HomeSource  # noqa: E402
from ironcurtain.operations.operations import Operations  # noqa: E402
from ironcurtain.operations.principal import owner  # noqa: E402
from ironcurtain.secrets.redaction import Redactor  # noqa: E402
from ironcurtain.services import unix_socket  # noqa: E402
from ironcurtain.session.events import EscalationRaised, Stamped  # noqa: E402
from ironcurtain.session.manager import SessionManager  # noqa: E402
from ironcurtain.session.model import Reply, SessionRequest, Usage  # noqa: E402
from ironcurtain.session.parts import Core, NoTools, Services, SessionKind  # noqa: E402
from ironcurtain.view.events import describe  # noqa: E402
from ironcurtain.view.speech import LoggedSpeech  # noqa: E402

reactor: Any = the_reactor

ARGUMENTS = {"remote": "origin", "branch": "main"}
OURSELVES = (sys.executable, "-m", "benchmarks.escalation")
SAME, ACROSS = 20.0, 50.0
"""The goals: most milliseconds at the 99th percentile, in one process and from another."""


class Asker:
    """An agent that asks once a message, as the MCP proxy does, and replies when it asked and when it was released."""

    terminal = None
    model = ""

    def __init__(self, core: Core, tools: NoTools) -> None:
        self._core = core

    async def start(self) -> None:
        """Nothing to start."""

    async def stop(self) -> None:
        """Nothing to stop."""

    def usage(self) -> Usage:
        """:returns: nothing used."""
        return Usage()

    async def respond(self, message: str) -> Reply:
        """Make one call that needs a person."""
        asked = time.monotonic()
        core, digest = self._core, arguments_digest("git", "push", ARGUMENTS)
        core.audit.append("call", callId=message, server="git", tool="push", arguments=ARGUMENTS, decision="escalate")
        request = EscalationRequest(
            core.id, message, "git", "push", ARGUMENTS, "leaves this machine", "push", "v", digest
        )
        answer = await core.escalations.ask(request)
        assert answer.grant is not None, answer
        outcome = {"number": answer.number, "outcome": answer.outcome, "by": answer.by}
        await core.audit.durable(core.audit.append("decision", callId=message, **outcome))
        answer.grant.spend(Binding(core.id, digest, "v"), reactor.seconds())
        return Reply(json.dumps([asked, time.monotonic()]), Usage())


async def make_operations(directory: Path) -> Operations:
    """:returns: the operations of a new home with one session."""
    services = Services(
        home=Home(directory / "home", directory / "run"),
        settings=Settings(),
        clock=reactor,
        now=time.time,
        next_closing=closing_numbers(time.time()),
        in_thread=lambda work: deferToThreadPool(reactor, reactor.getThreadPool(), work),
        listen=unix_socket.listen,
        watcher=DirectoryWatcher(reactor),
        redactor=Redactor(),
        proxies=UpstreamProxies(reactor, Network(), {}),
        describe=describe,
        spoken=LoggedSpeech,
        control_socket=str(directory / "control.sock"),
    )
    manager = SessionManager(
        {"asker": SessionKind("asker", lambda core: NoTools(), Asker)},
        services,
        lambda request: request.workspace or Path(),
    )
    await manager.create(SessionRequest("asker"))
    return Operations(manager)


class Approver:
    """Approves every escalation the moment it hears of it, and remembers when."""

    def __init__(self, api: SessionApi) -> None:
        self._api, self.approved = api, 0.0

    def hear(self, stamped: Stamped) -> None:
        """Take an event."""
        event = stamped.event
        if isinstance(event, EscalationRaised):
            self.approved = time.monotonic()
            Deferred.fromCoroutine(self._api.decide(event.number, Outcome.APPROVED, event.digest))


class FileApprover:
    """Approves through the files, as a program does that knows nothing of ours."""

    def __init__(self, directory: Path) -> None:
        self._directory, self.approved = directory, 0.0

    def look(self) -> None:
        """Answer each request that has no answer yet."""
        for request in self._directory.glob("request-*.json"):
            response = self._directory / request.name.replace("request-", "response-")
            if not response.exists():
                self.approved = time.monotonic()
                temporary = self._directory / "answer.tmp"
                temporary.write_text('{"decision":"approved"}')
                temporary.rename(response)


Waits = list[tuple[float, float]]
"""For each call, in seconds: from asking to release, and from the approval to release."""


async def measure(api: SessionApi, approver: Approver | FileApprover, calls: int) -> Waits:
    """:returns: what each call waited, after one in ten more to warm up."""
    waits = []
    for number in range(-calls // 10, calls):
        asked, released = json.loads((await api.send(1, f"call {number}")).text)
        if number >= 0:
            waits.append((released - asked, released - approver.approved))
    return waits


async def in_process(directory: Path, calls: int) -> Waits:
    """Owner and approver are one process."""
    api = LocalApi(await make_operations(directory), owner())
    approver = Approver(api)
    stop = await api.follow(1, 0, approver.hear)
    waits = await measure(api, approver, calls)
    stop()
    await api.stop(1)
    return waits


async def across(directory: Path, calls: int) -> Waits:
    """The approver hears and answers through the control API."""
    api = ControlClient(reactor, str(directory / "control.sock"))
    approver = Approver(api)
    stop = await api.follow(1, 0, approver.hear)
    waits = await measure(api, approver, calls)
    stop()
    return waits


async def through_files(directory: Path, calls: int) -> Waits:
    """The approver watches the directory of escalations and writes there."""
    api = ControlClient(reactor, str(directory / "control.sock"))
    (info,) = await api.sessions()
    escalations = directory / "home" / "sessions" / info.id / "escalations"
    approver, watcher = FileApprover(escalations), DirectoryWatcher(reactor)
    watcher.add(escalations, approver.look)
    waits = await measure(api, approver, calls)
    watcher.stop()
    return waits


class Sight:
    """A terminal with a console on it, which tells when an escalation has been drawn."""

    blocked = False

    def __init__(self) -> None:
        self.drawn: Deferred[float] = Deferred()

    def write(self, data: bytes) -> None:
        """Take what is drawn; the window's title, which comes last, says that something waits."""
        if b": 1 waiting" in data:
            drawn, self.drawn = self.drawn, Deferred()
            drawn.callback(time.monotonic())

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows."""
        return 120, 40

    def close(self, status: int) -> None:
        """Nothing to close."""


async def on_a_console(directory: Path, api: ProcessApi, calls: int) -> list[float]:
    """:returns: seconds from asking to the console that has drawn the question."""
    sight, taken = Sight(), []
    home = Home(directory / "home", directory / "run")
    source = HomeSource(reactor, SessionRegistry(home.registry), home.daemon_socket, lambda path, host: api, list)
    console = Console(source, sight, reactor, "bench", environ={"TERM": "xterm-256color"})
    console.start()
    for number in range(-2, calls):
        await deferLater(reactor, 0.25)  # how soon it asks again is limited
        drawn = sight.drawn
        reply = Deferred.fromCoroutine(api.send(1, f"call {number}"))
        seen = await drawn
        (view,) = await api.escalations()
        await api.decide(view.number, Outcome.APPROVED, view.digest)
        asked, _ = json.loads((await reply).text)
        taken.append(seen - asked)
    console.stop()
    return taken[2:]


async def drawn_in_process(directory: Path, calls: int) -> list[float]:
    """Owner and console are one process."""
    api = LocalApi(await make_operations(directory), owner())
    taken = await on_a_console(directory, api, calls)
    await api.stop(1)
    return taken


def floor(calls: int) -> list[float]:
    """:returns: seconds of each round trip of 64 bytes to a child that sends them back."""
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([*OURSELVES, "--echo"], stdin=theirs.fileno()) as child:
        taken = []
        for _ in range(calls + calls // 10):
            began = time.monotonic()
            ours.sendall(b"x" * 64)
            ours.recv(64)
            taken.append(time.monotonic() - began)
        ours.shutdown(socket.SHUT_RDWR)
        child.wait()
    return taken[calls // 10 :]


def echo() -> None:
    """Send back what comes on standard input, which is a socket."""
    with socket.socket(fileno=0) as stream:
        while data := stream.recv(64):
            stream.sendall(data)


def line(name: str, taken: list[float], least: float, goal: float | None = None) -> str:
    """:returns: one line of the table."""
    p50, p99 = statistics.median(taken) * 1000, statistics.quantiles(taken, n=100)[98] * 1000
    verdict = "" if goal is None else f"   {'within' if p99 <= goal else 'OVER'} {goal:.0f} ms"
    return f"{name:<44} {p50:9.3f} {p99:9.3f} {p50 / 1000 / least:9.1f}{verdict}"


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Another process with a new home."""
    with subprocess.Popen([*OURSELVES, "--owner", str(directory)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        try:
            yield
        finally:
            child.kill()


async def compare(calls: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="ic-") as name:
        one, other, third, fourth = (Path(name, place) for place in ("one", "other", "third", "fourth"))
        bare = floor(calls)
        alone = await in_process(one, calls)
        drawn = await drawn_in_process(third, max(2, calls // 5))
        with owned(other):
            waits = {"through the control API": await across(other, calls)}
            waits["through the files"] = await through_files(other, calls)
            client = ControlClient(reactor, str(other / "control.sock"))
            decided = len(await client.escalations(closed=True))
            drawn_late = await on_a_console(other, client, max(2, calls // 5))
        with owned(fourth):
            client = ControlClient(reactor, str(fourth / "control.sock"))
            drawn_across = await on_a_console(fourth, client, max(2, calls // 5))
        bare += floor(calls)
    least = statistics.median(bare)
    print(f"{calls} calls each{'':<28} {'p50 ms':>9} {'p99 ms':>9} {'x floor':>9}")
    print(line("floor: a round trip between two processes", bare, least))
    print(line("in one process: asked to drawn on a console", drawn, least, SAME))
    print(line("from another process: asked to drawn", drawn_across, least, ACROSS))
    print(line(f"  the same with {decided} that are decided", drawn_late, least, ACROSS))
    table: tuple[tuple[str, Waits, float], ...] = (
        ("in one process", alone, SAME),
        *((way, taken, ACROSS) for way, taken in waits.items()),
    )
    for way, taken, goal in table:
        print(line(f"{way}: asked to released", [total for total, _ in taken], least, goal))
        print(line(f"{'':<{len(way)}}  approved to released", [rest for _, rest in taken], least))


async def own(directory: Path) -> None:
    """Serve until killed."""
    listen(reactor, directory / "control.sock", await make_operations(directory))
    print("listening", flush=True)
    await Deferred()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500, help="calls on each way (default 500)")
    parser.add_argument("--owner", help=argparse.SUPPRESS)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parse(parser, calls=10)
    if options.echo:
        echo()
        return
    job = own(Path(options.owner)) if options.owner else compare(options.calls)
    react(lambda _: Deferred.fromCoroutine(job))


if __name__ == "__main__":
    main()
