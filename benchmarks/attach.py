"""
What it costs to reach a container's terminal over SSH: through our service, and through ``sshd`` and ``docker attach``.

Both ways end in the same program in containers of the same image, whose terminal echoes keys; both begin with the same
``ssh`` in a terminal of its own. On our way the screen is modelled and recorded, as in the product. A third way is
``docker attach`` within tmux, which draws screens afresh for whoever comes, too. All take turns::

    python -m benchmarks.attach [--keys 200] [--rounds 5]

The bars: a key comes back in 1.25 times the time of ``docker attach`` at the median, and bulk output is 1.5 times as
fast. It needs ``ssh``, ``sshd`` and ``tmux``, and a Docker Engine, which it starts if none answers.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pty
import select
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.sizes import parse
from tests import engine
from tests.ports import free_port

COLUMNS, ROWS = 120, 40
END = b"THE END OF IT"
PROGRAM = (
    "printf 'all set\\n'; while read size; do yes 'a line of output of a program, about as wide as such lines are' "
    "| head -c $size; printf '\\nTHE END %s\\n' 'OF IT'; done"
)
"""Echoes keys, as the kernel does for it; a number that is entered has it write so many bytes."""

KEYS = b"vwyz"
"""Those that are pressed: escape sequences, which a screen sends now and then, have none of them."""

PATIENCE = 120.0
"""Seconds that anything may take."""


class Terminal:
    """A program in a terminal of its own, such as ``ssh``, as the one who sits there sees it."""

    def __init__(self, *command: str, environ: Mapping[str, str] = os.environ) -> None:
        self._process, self._fd = pty.fork()
        if not self._process:
            os.execvpe(command[0], command, {**environ, "TERM": "xterm-256color"})
        self.resize(COLUMNS, ROWS)
        self._kept = b""

    def resize(self, columns: int, rows: int) -> None:
        """Give it another size."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data: bytes) -> None:
        """Press keys."""
        os.write(self._fd, data)

    def until(self, wanted: bytes) -> int:
        """:returns: how many bytes came, until these had come."""
        size, limit = 0, time.monotonic() + PATIENCE
        while wanted not in self._kept:
            if not self._comes(limit - time.monotonic()):
                raise SystemExit(f"{wanted!r} did not come: {self._kept[-500:]!r}")
            data = self._read()
            size += len(data)
            self._kept = self._kept[-len(wanted) :] + data
        self._kept = self._kept.partition(wanted)[2]
        return size

    def forget(self) -> None:
        """Forget what came and was not waited for."""
        self._kept = b""

    def quiet(self) -> None:
        """Wait until nothing comes any more."""
        limit = time.monotonic() + PATIENCE
        while self._comes(0.3):
            self._kept = self._read()
            if time.monotonic() > limit:
                raise SystemExit(f"it does not become quiet: {self._kept[-500:]!r}")
        self._kept = b""

    def _comes(self, seconds: float) -> bool:
        """:returns: whether something is there to be read, within so many seconds."""
        return seconds > 0 and bool(select.select([self._fd], [], [], seconds)[0])

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, 65536)
        except OSError:
            raise SystemExit(f"the terminal was closed after {self._kept!r}") from None

    def close(self) -> None:
        """Hang up."""
        os.close(self._fd)
        os.waitpid(self._process, 0)


def serve(home: Path, container: str) -> None:
    """Our service in front of one container, which it starts; it says the port."""
    from twisted.internet.asyncioreactor import install

    install()
    from twisted.internet import reactor as the_reactor
    from twisted.internet.defer import Deferred

    from ironcurtain.container.engine import Engine
    from ironcurtain.container.terminal import ContainerTerminal
    from ironcurtain.home.layout import find_home
    from ironcurtain.operations import Principal
    from ironcurtain.session.terminal import RecordingFile
    from ironcurtain.ssh.attaching import Attaching
    from ironcurtain.ssh.channel import ChannelProgram, SessionChannel
    from ironcurtain.ssh.service import SshService
    from ironcurtain.terminal.hub import Hub
    from ironcurtain.terminal.model import Mode
    from ironcurtain.terminal.recording import Recording
    from ironcurtain.terminal.screen import Screens

    reactor: Any = the_reactor

    class One:
        """Whoever comes, comes to the terminal."""

        def __init__(self, hub: Hub) -> None:
            self._attaching = Attaching(reactor, lambda who, name, mode: hub, lambda who, name, mode: Deferred())

        async def open(self, who: Principal, command: bytes | None, channel: SessionChannel) -> ChannelProgram:
            """Attach."""
            return await self._attaching.attach(who, "1", Mode.DRIVE, channel)

    async def start() -> None:
        docker = Engine(reactor, engine.engine())
        stream, size = ContainerTerminal(docker, COLUMNS, ROWS), (COLUMNS, ROWS)
        file = RecordingFile(home / "recording.cast")
        recording = Recording(file, reactor.seconds(), *size, timestamp=time.time(), title="bench", limit=16_000_000)
        hub = stream.owner = Hub(stream, reactor, Screens(reactor).open(*size), size, recording=recording)
        await stream.open(container)
        await docker.start(container)
        await stream.go()
        where = find_home({"IRONCURTAIN_HOME": str(home)}, os.geteuid())
        service = SshService(reactor, where, ["127.0.0.1"], 0, One(hub))
        await service.start()
        print(service.ports[0], flush=True)

    def failed(failure: Any) -> None:
        failure.printTraceback()
        reactor.stop()

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(start()).addErrback(failed))
    reactor.run()


def docker(*words: str) -> str:
    """:returns: what a command of Docker's prints."""
    environ = {**os.environ, **engine.environment()}
    return subprocess.run(["docker", *words], env=environ, check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def container(*command: str) -> Iterator[str]:
    """A container with a terminal, not started; its id is given."""
    words = ("--tty", "--interactive", "--network", "none", "--log-driver", "none")
    name = docker("create", *words, engine.image(), *command)
    try:
        yield name
    finally:
        docker("rm", "--force", name)


@contextlib.contextmanager
def sshd(top: Path, key: Path, command: str) -> Iterator[int]:
    """OpenSSH's own server, which lets one key in and runs one command; its port is given."""
    top.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(top / "host")], check=True)
    shutil.copy(f"{key}.pub", top / "authorized")
    port, program = free_port(), shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise SystemExit("there is no sshd: install openssh-server")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (top / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {top}/host\nAuthorizedKeysFile {top}/authorized\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPrintMotd no\nPrintLastLog no\nPermitRootLogin yes\n"
        f"ForceCommand {command}\n"
    )
    with subprocess.Popen([program, "-D", "-e", "-f", str(top / "config")], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port)
            yield port
        finally:
            process.terminate()


def wait_for(port: int) -> None:
    """Wait until somebody listens."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nobody listens on port {port}")


def ssh(port: int, key: Path, command: str = "attach 1") -> tuple[str, ...]:
    """:returns: the client's command line."""
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "IdentitiesOnly=yes")
    words = [word for option in options for word in ("-o", option)]
    return ("ssh", "-tt", "-F", "none", *words, "-i", str(key), "-p", str(port), "127.0.0.1", command)


def key_times(ways: dict[str, Terminal], keys: int) -> Iterator[tuple[str, float]]:
    """:returns: ways, and seconds from a key to its echo; each key is pressed at all of them in turn."""
    for number in range(keys):
        key = KEYS[number % len(KEYS) :][:1]
        for way, terminal in ways.items():
            terminal.forget()
            start = time.perf_counter()
            terminal.type(key)
            terminal.until(key)
            yield way, time.perf_counter() - start
            time.sleep(0.002)
        if number % 50 == 49:
            for terminal in ways.values():
                terminal.type(b"\x15")  # erases the line
                terminal.quiet()


def bulk_rate(terminal: Terminal, megabytes: int) -> float:
    """:returns: megabytes a second."""
    start = time.perf_counter()
    terminal.type(b"\x15%d\r" % (megabytes * 1_000_000))
    terminal.until(END)
    rate = megabytes / (time.perf_counter() - start)
    terminal.quiet()
    return rate


def measure(ways: dict[str, Terminal], options: argparse.Namespace, floor: str = "docker attach") -> None:
    """Measure in turns, and print a table, with the ratios to one of the ways."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, taken in key_times(ways, options.keys):
            times[way].append(taken)
        for way, terminal in ways.items():
            rates[way].append(bulk_rate(terminal, options.megabytes))
    floor_time, floor_rate = (statistics.median(found[floor]) for found in (times, rates))
    print(f"{'':22}{'p50 ms':>9}{'p99 ms':>9}{'ratio':>8}{'MB/s':>9}{'ratio':>8}")
    for way in ways:
        median, rate = statistics.median(times[way]), statistics.median(rates[way])
        late = statistics.quantiles(times[way], n=100)[98]
        print(
            f"{way:22}{1e3 * median:9.2f}{1e3 * late:9.2f}{median / floor_time:8.2f}{rate:9.1f}{rate / floor_rate:8.2f}"
        )


def main() -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=200, help="keys a round (default 200)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--megabytes", type=int, default=16, help="size of much output (default 16)")
    options = parse(parser, keys=10, rounds=1, megabytes=1)
    from ironcurtain.container.terminal import waiting

    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        top, key = Path(directory), Path(directory) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        plain, tmuxed = (stack.enter_context(container("/bin/sh", "-c", PROGRAM)) for _ in range(2))
        docker("start", plain, tmuxed)
        attach = f"docker --host unix://{engine.engine()} attach"
        within = f"tmux -f /dev/null -S {top}/tmux new-session 'exec {attach} {tmuxed}'"
        ours = stack.enter_context(container(*waiting(("/bin/sh", "-c", PROGRAM))))
        home = top / "home"
        let_in = [sys.executable, "-m", "ironcurtain.cli", "ssh", "add-key", "--roles", "admin", f"{key}.pub"]
        subprocess.run(let_in, env={**os.environ, "IRONCURTAIN_HOME": str(home)}, check=True, stdout=subprocess.DEVNULL)
        command = [sys.executable, "-m", "benchmarks.attach", "--serve", str(home), ours]
        environ = {**os.environ, **engine.environment()}
        service = stack.enter_context(subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True))
        stack.callback(service.terminate)
        assert service.stdout is not None
        port = int(service.stdout.readline())
        ways = {
            "docker attach": Terminal(*ssh(stack.enter_context(sshd(top / "1", key, f"{attach} {plain}")), key)),
            "docker attach in tmux": Terminal(*ssh(stack.enter_context(sshd(top / "2", key, within)), key)),
            "ours": Terminal(*ssh(port, key)),
        }
        for terminal in ways.values():
            stack.callback(terminal.close)
            terminal.quiet()
            terminal.type(b"ready?")
            terminal.until(b"ready?")
            terminal.type(b"\x15")
            terminal.quiet()
        measure(ways, options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
