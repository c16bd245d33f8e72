"""
What a fleet costs: two members with the installed product, in homes of their own, and three servers of NATS in a
cluster, on this machine.

Measured are how much later a question is seen on the other host than on its own, decisions and other requests from
there and from here, the memory of a member beside that of a daemon alone, and the bytes that a member receives and
sends through the server while nothing happens, for numbers of other members. Those are members in this process: real
ones, without a daemon's other parts, and beyond those simulated ones (:mod:`benchmarks.fleet_simulated`). With
``--hosts`` there are more hosts with the installed product, and with ``--running`` each has so many sessions, whose
scripted agents have answered and wait. With ``--listed`` each further member says that it has so many::

    python -m benchmarks.fleet [--hosts 2] [--running 0] [--listed 0] [--sessions 10] [--members 5 20 50]
        [--simulated 100 200 500] [--idle 90]
"""

from __future__ import annotations

import argparse
import base64
import json
import signal
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.asyncioreactor import install

install()

from twisted.internet.defer import Deferred  # noqa: E402
from twisted.internet.task import deferLater, react  # noqa: E402
from twisted.internet.threads import deferToThread  # noqa: E402

from benchmarks.fleet_figure import draw  # noqa: E402
from benchmarks.fleet_simulated import Simulated  # noqa: E402
from benchmarks.sizes import parse  # noqa: E402
from ironcurtain.control.client import ControlClient  # noqa: E402
from ironcurtain.errors import Unavailable  # noqa: E402
from ironcurtain.escalation import Outcome  # noqa: E402
from ironcurtain.fleet.joining import Credentials, key_text, read_credentials, trust  # noqa: E402
from ironcurtain.fleet.service import Abilities, FleetService  # noqa: E402
from ironcurtain.home.fleet_section import FleetSettings  # noqa: E402
from ironcurtain.home.layout import Home  # noqa: E402
from ironcurtain.home.registry import SessionEntry, SessionRegistry  # noqa: E402
from ironcurtain.operations import Role  # noqa: E402
from ironcurtain.process.identity import identify  # noqa: E402
from ironcurtain.session.events import EscalationRaised, Stamped  # noqa: E402
from ironcurtain.session.model import SessionInfo, SessionRequest  # noqa: E402
from tests.fleet.hosts import BIN, EVERYBODY, Fleet, Host, Site  # noqa: E402
from tests.product import wait_until  # noqa: E402

PATIENCE = 300.0
"""Seconds for what must happen."""

QUESTIONS = 9
"""Questions of one session, whose agent may ask its model ten times."""


Costs = dict[int, tuple[float, float]]


class Pair(Fleet):
    """
    Two hosts of a fleet, and their servers.

    :param more: number of further hosts with daemons.
    """

    def __init__(self, more: int) -> None:
        super().__init__(("laptop", "build-3", *(f"host-{number}" for number in range(more))), [Site()] * 3)
        self.laptop, self.build = self.hosts["laptop"], self.hosts["build-3"]
        self.begin()


async def until(reactor: Any, true: Callable[[], Any]) -> None:
    """Wait until something is true, and look often."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError("it did not happen")
        await deferLater(reactor, 0.002)


def show(what: str, milliseconds: list[float]) -> None:
    """Print a line with the median and the slow end."""
    ordered = sorted(milliseconds)
    slow = ordered[min(len(ordered) - 1, int(len(ordered) * 0.9))]
    print(f"{what:46} p50 {statistics.median(ordered):8.2f} ms   p90 {slow:8.2f} ms", flush=True)


class Seen:
    """When each question arrived at a client."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}

    def event(self, stamped: Stamped) -> None:
        """Note a question, by its number on its own host."""
        if isinstance(stamped.event, EscalationRaised):
            number = stamped.event.number
            self.at[getattr(number, "there", number)] = time.perf_counter()


async def questions(reactor: Any, pair: Pair, sessions: int, earlier: int = 0) -> None:
    """Questions of the second host, seen and decided from both in turn, after so many earlier ones."""
    near = ControlClient(reactor, str(pair.build.home.daemon_socket))
    far = ControlClient(reactor, str(pair.laptop.home.fleet_socket("build-3", "daemon")), host="build-3")
    here_seen, far_seen = Seen(), Seen()
    took: dict[ControlClient, list[float]] = {near: [], far: []}
    asked: dict[ControlClient, list[float]] = {near: [], far: []}
    for last in range(earlier + QUESTIONS, earlier + sessions * QUESTIONS + 1, QUESTIONS):
        before = max((info.number for info in await near.sessions()), default=0)
        session = pair.build.ask(QUESTIONS)
        info = await begun(reactor, near, before)
        stops = [await near.follow(info.id, 0, here_seen.event), await far.follow(info.id, 0, far_seen.event)]
        for number in range(last - QUESTIONS + 1, last + 1):
            await until(reactor, lambda: number in here_seen.at and number in far_seen.at)  # noqa: B023
            client = (near, far)[number % 2]
            (view,) = await client.escalations()
            took[client].append(await timed(partial(client.decide, view.number, Outcome.APPROVED, view.digest)))
            for each in (near, far):
                asked[each].append(await timed(each.sessions))
        for stop in stops:
            stop()
        await deferToThread(session.communicate)
    later = [1000 * (far_seen.at[number] - here_seen.at[number]) for number in sorted(here_seen.at)]
    show("a question is seen there later than here by", later)
    show("decided and released, by the host itself", took[near])
    show("decided and released, from the other host", took[far])
    show("a list of sessions, of the host itself", asked[near])
    show("a list of sessions, of the other host", asked[far])


async def occupy(reactor: Any, fleet: Fleet, count: int) -> None:
    """Start so many sessions on each host, whose scripted agents have answered once and wait."""
    for host in fleet.hosts.values():
        client = ControlClient(reactor, str(host.home.daemon_socket))
        options = {"backend": host.product.script(*[{"text": "All done."}] * count)}
        for _ in range(count):
            info = await client.start(SessionRequest("builtin", "", None, options))
            await client.send(info.number, "Say something")


async def take_none(request: SessionRequest) -> None:
    """:raises Unavailable: always: these members run nothing."""
    raise Unavailable("a member without a daemon")


async def begun(reactor: Any, client: ControlClient, before: int) -> SessionInfo:
    """:returns: the session that runs with a higher number, once there is one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for info in await client.sessions():
            if info.state != "closed" and info.number > before:
                return info
        await deferLater(reactor, 0.1)
    raise TimeoutError("no session has started")


async def timed(ask: Callable[[], Coroutine[Any, Any, Any]]) -> float:
    """:returns: milliseconds."""
    start = time.perf_counter()
    await ask()
    return 1000 * (time.perf_counter() - start)


def memory(pid: int) -> float:
    """:returns: the memory of a process alone, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def alone() -> float:
    """:returns: the memory of a daemon that is no member, in MiB."""
    host = Host("alone")
    line = [str(BIN / "twistd"), "-n", "--pidfile=", "ironcurtain"]
    daemon = subprocess.Popen(
        line, env=host.product.environ, cwd=host.product.person, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(host.home.daemon_socket.exists)
        time.sleep(1)
        return memory(daemon.pid)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        host.product.close()


def show_sessions(home: Home, count: int) -> None:
    """Have a member say that it has so many sessions."""
    home.registry.mkdir(parents=True, exist_ok=True)
    me = identify()
    for number in range(1, count + 1):
        entry = SessionEntry(
            session_id=str(uuid.uuid4()), escalation_dir="", label="builtin: Fix the tests that fail on Mondays",
            started_at="2026-11-27T10:00:00Z", number=number, kind="builtin", control_socket=str(home.daemon_socket),
            pid=me.pid, pid_start_time=me.start_time, boot_id=me.boot_id,
        )  # fmt: skip
        SessionRegistry(home.registry).add(entry)


async def idle(
    reactor: Any, pair: Pair, members: list[int], simulated: list[int], seconds: float, listed: int
) -> Costs:
    """:returns: by number of others that do nothing, bytes a second and memory in MiB of the first host."""
    found: Costs = {}
    home = pair.laptop.home
    credentials = read_credentials(home.fleet_credentials)
    first = (credentials.host, key_text(home))
    server, services = pair.files, list[FleetService]()
    pair.files.add(EVERYBODY, first)
    with tempfile.TemporaryDirectory() as top:
        options = permitted(pair, EVERYBODY).options()
        others = Simulated(reactor, options, (first[0], base64.b64decode(first[1])))
        try:
            for count in members:
                homes = []
                for number in range(len(services), count):
                    other = Home(Path(top) / str(number), Path(top) / f"{number}run")
                    other.prepare()
                    other.daemon_socket.touch()  # else it would not answer that nothing runs there
                    show_sessions(other, listed)
                    name = f"member-{number}"
                    server.add(name, first)
                    other.fleet_credentials.touch(mode=0o600)
                    other.fleet_credentials.write_bytes(json_of(permitted(pair, name)))
                    trust(other, *first, {"*": [Role.VIEW]})
                    trust(home, name, key_text(other), {"*": [Role.VIEW]})
                    homes.append(other)
                pair.cluster.reload()
                await deferLater(reactor, 1.0)
                for other in homes:
                    settings = FleetSettings(credentials=str(other.fleet_credentials))
                    services.append(FleetService(reactor, other, settings, Abilities((), tuple, take_none)))
                    await services[-1].start()
                others_now = count + len(pair.hosts) - 1
                found[others_now] = await at_rest(reactor, pair, others_now, seconds)
            if simulated:
                await others.start()
            for count in simulated:
                new = others.grow(count - len(services) - len(pair.hosts) + 1)
                text = "".join(
                    f"[hosts.{name}]\nkey = {json.dumps(base64.b64encode(key.public.raw).decode())}\n"
                    'people = { "*" = ["view"] }\n'
                    for name, key in new.items()
                )
                home.fleet_trust.write_text(home.fleet_trust.read_text() + text)
                await deferLater(reactor, 2.0)
                others.speak(new)
                found[count] = await at_rest(reactor, pair, count, seconds)
        finally:
            for service in services:
                await service.stop()
            if simulated:
                await others.stop()
    return found


def permitted(pair: Pair, name: str) -> Credentials:
    """:returns: what a host that was added needs to connect."""
    state = json.loads((pair.files.directory / "server.json").read_bytes())
    certificate = (pair.files.directory / "server.crt").read_text()
    return Credentials(
        host=name, servers=tuple(pair.cluster.addresses), password=state["passwords"][name], certificate=certificate,
        replicas=3,
    )  # fmt: skip


async def at_rest(reactor: Any, pair: Pair, count: int, seconds: float) -> tuple[float, float]:
    """:returns: bytes a second, and the memory in MiB, of the first host once it knows so many others."""
    home = pair.laptop.home
    await until(reactor, lambda: len(known(home)) >= count)
    await deferLater(reactor, min(seconds, 30.0))  # all of them have looked at each other
    before = pair.cluster.bytes_of("laptop")
    await deferLater(reactor, seconds)
    rate = (pair.cluster.bytes_of("laptop") - before) / seconds
    assert pair.laptop.daemon is not None
    held = memory(pair.laptop.daemon.pid)
    print(f"an idle member among {count:3} others: {rate:7.0f} bytes a second, {held:.1f} MiB", flush=True)
    return rate, held


def figure(costs: Costs, lone: float) -> str:
    """:returns: how traffic and memory grow, as SVG."""
    rates = [(count, rate) for count, (rate, _) in costs.items()]
    held = [(count, memory - lone) for count, (_, memory) in costs.items()]
    return draw({"bytes a second of an idle host": (rates, 1000), "MiB above a daemon alone": (held, 10)})


def json_of(credentials: Any) -> bytes:
    """:returns: credentials as their file has them."""
    import msgspec

    return msgspec.json.encode(credentials)


def known(home: Home) -> list[Any]:
    """:returns: the members that a daemon knows."""
    found: list[Any] = json.loads(home.fleet_members.read_bytes())["members"]
    return found


async def measure(reactor: Any, options: argparse.Namespace) -> None:
    """Measure everything, and print it."""
    lone = await deferToThread(alone)
    pair = await deferToThread(Pair, options.hosts - 2)
    try:
        assert pair.laptop.daemon is not None
        member = memory(pair.laptop.daemon.pid)
        print(f"memory: a daemon alone {lone:.1f} MiB, a member {member:.1f} MiB", flush=True)
        if options.running:
            await occupy(reactor, pair, options.running)
            print(
                f"{options.hosts} hosts with {options.running} sessions each: {memory(pair.laptop.daemon.pid):.1f} MiB"
            )
        await questions(reactor, pair, options.sessions)
        costs = await idle(reactor, pair, options.members, options.simulated, options.idle, options.listed)
        if options.figure is not None:
            options.figure.write_text(figure(costs, lone))
        if options.simulated:
            print("the same again, among them:", flush=True)
            await questions(reactor, pair, max(1, options.sessions // 3), options.sessions * QUESTIONS)
    finally:
        await deferToThread(pair.end)


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10, help="number of sessions, each with nine questions")
    parser.add_argument("--hosts", type=int, default=2, help="number of hosts with daemons")
    parser.add_argument("--running", type=int, default=0, help="sessions with scripted agents on each of them")
    parser.add_argument("--listed", type=int, default=0, help="sessions that each further member says that it has")
    parser.add_argument("--members", type=int, nargs="+", default=[5, 20, 50], help="numbers of further members")
    parser.add_argument("--simulated", type=int, nargs="*", default=[100, 200, 500], help="numbers with simulated ones")
    parser.add_argument("--idle", type=float, default=90.0, help="seconds of idleness for each number")
    parser.add_argument("--figure", type=Path, help="where to draw how it grows, as SVG")
    options = parse(parser, sessions=1, idle=1.0)
    if options.smallest:
        options.members, options.simulated = [1], [4]
    react(lambda reactor: Deferred.fromCoroutine(measure(reactor, options)))


if __name__ == "__main__":
    main()
