"""
What a fleet costs: two members with the installed product, in homes of their own, and a server of NATS on this machine.

Measured are how much later a question is seen on the other host than on its own, decisions and other requests from
there and from here, the memory of a member beside that of a daemon alone, and the bytes that a member receives and
sends through the server while nothing happens, for numbers of other members. Those are members in this process: real
ones, without a daemon's other parts::

    python -m benchmarks.fleet [--sessions 10] [--members 5 20 50] [--idle 90]
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.asyncioreactor import install

install()

from twisted.internet.defer import Deferred  # noqa: E402
from twisted.internet.task import deferLater, react  # noqa: E402
from twisted.internet.threads import deferToThread  # noqa: E402

from benchmarks.sizes import parse  # noqa: E402
from ironcurtain.control.client import ControlClient  # noqa: E402
from ironcurtain.errors import Unavailable  # noqa: E402
from ironcurtain.escalation import Outcome  # noqa: E402
from ironcurtain.fleet.joining import ServerFiles, key_text, read_credentials, trust  # noqa: E402
from ironcurtain.fleet.service import Abilities, FleetService  # noqa: E402
from ironcurtain.home.fleet_section import FleetSettings  # noqa: E402
from ironcurtain.home.layout import Home  # noqa: E402
from ironcurtain.operations import Role  # noqa: E402
from ironcurtain.session.events import EscalationRaised, Stamped  # noqa: E402
from ironcurtain.session.model import SessionInfo, SessionRequest  # noqa: E402
from tests.fleet.test_product import Host, free_port, wait_until  # noqa: E402

PATIENCE = 60.0
"""Seconds for what must happen."""

QUESTIONS = 9
"""Questions of one session, whose agent may ask its model ten times."""

BIN = Path(sys.executable).parent


def home_of(host: Host) -> Home:
    """:returns: the home of a host."""
    return Home(host.product.home, host.product.home / "run")


class Pair:
    """Two hosts of a fleet, and their server."""

    def __init__(self) -> None:
        self.laptop, self.build, self.monitor = Host("laptop"), Host("build-3"), free_port()
        me = f"local:{pwd.getpwuid(os.geteuid()).pw_name}"
        said = self.laptop.fleet("init", "laptop", "--listen", f"127.0.0.1:{free_port()}")
        self.files = said.split("nats-server -c ")[1].split()[0]
        self.laptop.fleet("add", "build-3", "--output", str(self.build.product.person / "build-3.join"))
        self.build.fleet("join", "../build-3.join", "--person", f"{me}=view,approve")
        self.laptop.fleet("trust", "build-3", self.build.fleet("key").strip(), "--person", f"{me}=view")
        line = [str(BIN / "nats-server"), "-c", self.files, "-m", str(self.monitor)]
        self.server = subprocess.Popen(line, stderr=subprocess.DEVNULL)
        self.laptop.begin()
        self.build.begin()
        wait_until(lambda: self.laptop.sees("build-3", "here") and self.build.sees("laptop", "here"))

    def ask(self, count: int) -> subprocess.Popen[str]:
        """:returns: a session of the second host that asks so many times."""
        file = self.build.product.person / "names.txt"
        file.write_text("Ada")
        turn = {"text": "Let me look.", "code": f"print(filesystem.read_text_file({str(file)!r}))"}
        script = self.build.product.script(*[turn] * count, {"text": "All done."})
        return self.build.product.start("start", "--backend", script, "Read it", stdin=subprocess.DEVNULL)

    def bytes_of(self, user: str) -> int:
        """:returns: the bytes that the server has exchanged with a host."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/connz?auth=1&limit=1000") as answer:
            connections = json.load(answer)["connections"]
        return sum(each["in_bytes"] + each["out_bytes"] for each in connections if each["authorized_user"] == user)

    def end(self) -> None:
        """End everything."""
        for host in (self.laptop, self.build):
            host.end()
        self.server.terminate()
        self.server.wait()
        for host in (self.laptop, self.build):
            host.product.close()


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


async def questions(reactor: Any, pair: Pair, sessions: int) -> None:
    """Questions of the second host, seen and decided from both in turn."""
    near = ControlClient(reactor, str(home_of(pair.build).daemon_socket))
    far = ControlClient(reactor, str(home_of(pair.laptop).fleet_socket("build-3", "daemon")), host="build-3")
    here_seen, far_seen = Seen(), Seen()
    took: dict[ControlClient, list[float]] = {near: [], far: []}
    asked: dict[ControlClient, list[float]] = {near: [], far: []}
    for last in range(QUESTIONS, sessions * QUESTIONS + 1, QUESTIONS):
        session = pair.ask(QUESTIONS)
        info = await running(reactor, near)
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


async def take_none(request: SessionRequest) -> None:
    """:raises Unavailable: always: simulated members run nothing."""
    raise Unavailable("a simulated member")


async def running(reactor: Any, client: ControlClient) -> SessionInfo:
    """:returns: the session that runs, once there is one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for info in await client.sessions():
            if info.state != "closed":
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
        wait_until(home_of(host).daemon_socket.exists)
        time.sleep(1)
        return memory(daemon.pid)
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait()
        host.product.close()


async def idle(reactor: Any, pair: Pair, members: list[int], seconds: float) -> None:
    """Traffic of the first host, among growing numbers of members that do nothing."""
    home = home_of(pair.laptop)
    first = (read_credentials(home.fleet_credentials).host, key_text(home))
    server, services = ServerFiles(home.fleet_server), list[FleetService]()
    with tempfile.TemporaryDirectory() as top:
        try:
            for count in members:
                homes = []
                for number in range(len(services), count):
                    other = Home(Path(top) / str(number), Path(top) / f"{number}run")
                    other.path.mkdir(mode=0o700)
                    other.run.mkdir(mode=0o700)
                    other.daemon_socket.touch()  # else it would not answer that nothing runs there
                    name = f"member-{number}"
                    made = server.add(name, first)
                    other.fleet_credentials.touch(mode=0o600)
                    other.fleet_credentials.write_bytes(json_of(made))
                    trust(other, *first, {"*": [Role.VIEW]})
                    trust(home, name, key_text(other), {"*": [Role.VIEW]})
                    homes.append(other)
                pair.server.send_signal(signal.SIGHUP)
                await deferLater(reactor, 1.0)
                for other in homes:
                    settings = FleetSettings(credentials=str(other.fleet_credentials))
                    services.append(FleetService(reactor, other, settings, Abilities((), tuple, take_none)))
                    await services[-1].start()
                await until(reactor, lambda: len(known(home)) > count)  # noqa: B023
                await deferLater(reactor, min(seconds, 15.0))  # all of them have looked at each other
                before = pair.bytes_of("laptop")
                await deferLater(reactor, seconds)
                rate = (pair.bytes_of("laptop") - before) / seconds
                print(f"an idle member among {count + 1:3} others: {rate:7.0f} bytes a second", flush=True)
            assert pair.laptop.daemon is not None
            print(f"its memory then: {memory(pair.laptop.daemon.pid):.1f} MiB", flush=True)
        finally:
            for service in services:
                await service.stop()


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
    pair = await deferToThread(Pair)
    try:
        assert pair.laptop.daemon is not None
        member = memory(pair.laptop.daemon.pid)
        print(f"memory: a daemon alone {lone:.1f} MiB, a member {member:.1f} MiB", flush=True)
        await questions(reactor, pair, options.sessions)
        await idle(reactor, pair, options.members, options.idle)
    finally:
        await deferToThread(pair.end)


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10, help="number of sessions, each with nine questions")
    parser.add_argument("--members", type=int, nargs="+", default=[5, 20, 50], help="numbers of further members")
    parser.add_argument("--idle", type=float, default=90.0, help="seconds of idleness for each number")
    options = parse(parser, sessions=1, idle=1.0)
    if options.smallest:
        options.members = [1]
    react(lambda reactor: Deferred.fromCoroutine(measure(reactor, options)))


if __name__ == "__main__":
    main()
