"""
What it costs to reach the terminal of another host's session, and what becomes of it when a host dies.

The program runs at ``build-3``, and the person is at ``laptop``. Ways to it are ``ssh`` to build-3's own ``sshd``, the
same to our service there, ``ironcurtain attach build-3/N`` at laptop, and ``ssh`` to our service at laptop. Keys are
pressed at all of them in turn. Then the last two see a program write much and end at Ctrl-C, a new size, a detached
terminal come back, and ``kill -9`` of either daemon in the middle of much output::

    python -m benchmarks.fleet_attach [--keys 200] [--rounds 3] [--delay 0]

The bar: a key comes back through the fleet in 1.5 times the time of ``ssh`` to that host, at the median. With
``--delay`` a network takes so many milliseconds each way between laptop and the others: build-3, and the server.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.attach import COLUMNS, PATIENCE, PROGRAM, ROWS, Terminal, measure, ssh, sshd
from benchmarks.distance import distant
from benchmarks.sizes import parse
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role

SETTLE_SECONDS = 4.0
"""After a daemon was started again, until streams to the one before it have ended."""

SHELL = "stty -g; {}; echo ended $?; stty -g; echo over"
"""Runs a command, and shows whether the terminal is as before."""

FLOOD, TRICKLE = b"yes\r", b"sh -c 'while sleep 0.01; do echo y; done'\r"
"""Commands that write until they are interrupted: as much as is read, and where that is not measured, little."""

TIMES = b"sh -c 'while sleep 0.02; do date +T%s.%N; done'\r"
"""Writes the time. In a shell of its own, since dash loses a Ctrl-C in a loop of its own (about 1 of 100)."""

WAYS = ("ssh to build-3", "our ssh at build-3", "attach at laptop", "our ssh at laptop")
"""The first is what the others are compared with; each has a session of its own, but for the first."""


def serve(path: Path) -> None:
    """
    Own sessions with terminals in a home, as a process of it does; the numbers of them are printed.

    :param path: of the home.
    """
    from twisted.internet.asyncioreactor import install

    install()
    from twisted.internet import reactor as the_reactor
    from twisted.internet.defer import Deferred

    from ironcurtain.control.listening import listen
    from ironcurtain.operations.operations import Operations
    from ironcurtain.services import unix_socket
    from ironcurtain.session.parts import Core
    from ironcurtain.terminal.hub import Hub
    from ironcurtain.terminal.pty import LocalPty
    from ironcurtain.terminal.screen import Screens
    from tests.session.doubles import PlainAgent, PlainTools, World, request

    reactor: Any = the_reactor
    home = Home(path, path / "run")
    socket = home.owner_socket(os.getpid())

    class Screened(World):
        """Its agent is a program with a terminal of this machine."""

        def _make_agent(self, core: Core, tools: PlainTools) -> PlainAgent:
            pty = LocalPty(reactor, reactor)
            hub = pty.owner = Hub(pty, reactor, Screens(reactor).open(COLUMNS, ROWS), (COLUMNS, ROWS))
            environ = {"PATH": os.environ["PATH"], "TERM": "xterm-256color"}
            pty.spawn(["sh", "-c", core.request.task], environ, "/", COLUMNS, ROWS)
            return PlainAgent(core=core, terminal=hub)

    async def start() -> None:
        world = Screened(home.path, at=home, reactor=reactor)
        world.manager.services = replace(
            world.manager.services, listen=unix_socket.listen, control_socket=str(socket), now=time.time
        )
        listen(reactor, socket, Operations(world.manager))
        task = f"exec sh -c {shell_word(PROGRAM)}"
        for wanted in (task, task, task, "exec sh"):
            made = await world.manager.create(request(task=wanted, terminal=(COLUMNS, ROWS)))
            print(made.number, flush=True)

    Deferred.fromCoroutine(start()).addErrback(lambda failure: (failure.printTraceback(), reactor.stop()))
    reactor.run()


def shell_word(text: str) -> str:
    """:returns: a text as one word of the shell."""
    return "'" + text.replace("'", "'\\''") + "'"


class Watched(Terminal):
    """A terminal whose last bytes are looked at."""

    def __init__(self, *command: str, environ: Any = os.environ) -> None:
        super().__init__("sh", "-c", SHELL.format(" ".join(map(shell_word, command))), environ=environ)

    def rest(self) -> bytes:
        """:returns: the end of what came, once the command is over and the shell, too."""
        seen, limit = b"", time.monotonic() + PATIENCE
        with contextlib.suppress(SystemExit):
            while self._comes(limit - time.monotonic()):
                seen = (seen + self._read())[-20_000:]
        return seen


def check_output(name: str, terminal: Terminal, size: int, flood: bytes) -> None:
    """See much output, interrupt a command that writes more, and type on."""
    start = time.monotonic()
    terminal.type(b"yes 0123456789012345678901234567890123456789 | head -c %d | cat; echo wri''tten\r" % size)
    got = terminal.until(b"written")
    seconds = time.monotonic() - start
    terminal.type(flood)
    terminal.until(b"y\r\ny\r\ny")
    time.sleep(0.5)
    start = time.monotonic()
    terminal.type(b"\x03")
    terminal.type(b"echo st''opped\r")
    terminal.until(b"stopped")
    stopped = time.monotonic() - start
    terminal.resize(97, 33)
    terminal.type(b"sleep 0.3; stty size\r")
    terminal.until(b"33 97")
    print(
        f"{name}: {size / 1e6:.0f} MB were written in {seconds:.1f} s and {got / 1e6:.1f} MB shown; Ctrl-C took "
        f"{stopped:.2f} s while more came; the new size arrived",
        flush=True,
    )


def check_detach(name: str, command: tuple[str, ...], environ: Any) -> None:
    """Leave a terminal, come back, and see what was there."""
    first = Watched(*command, environ=environ)
    first.type(b"clear; echo still he''re\r")
    first.until(b"still here")
    first.type(b"\x1dd")
    end = first.rest()
    assert b"continues" in end or b"detached" in end, end[-500:]
    restored(name, end)
    again = Watched(*command, environ=environ)
    again.until(b"still here")
    again.type(b"\x1dd")
    restored(name, again.rest())


def check_revoked(name: str, terminal: Watched, revoke: Callable[[], object]) -> None:
    """Take a person's key or a host's trust away, and see how long the terminal still shows something."""
    interrupt(terminal)
    terminal.type(TIMES)
    terminal.until(b"T1")
    revoke()
    start = time.time()
    end = terminal.rest()
    restored(name, end)
    last = max((float(shown) for shown in re.findall(rb"T([0-9]{10}\.[0-9]{9})", end)), default=start)
    print(f"{name}: what was shown last came {max(0.0, last - start):.2f} s after it was revoked", flush=True)


def interrupt(terminal: Terminal) -> None:
    """End what goes on from before, once the screen was drawn: then keys reach it."""
    terminal.until(b"\x1b[")
    terminal.type(b"\x03")
    terminal.quiet()


def restored(name: str, end: bytes) -> None:
    """:raises AssertionError: the terminal is not as before."""
    after = re.findall(rb"^[0-9a-f]+(?::[0-9a-f]+){10,}", end, re.MULTILINE)
    assert b"over" in end, f"{name}: {end[-500:]!r}"
    assert after, f"{name}: {end[-500:]!r}"


def main() -> None:
    """Measure, and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=200, help="keys a round (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--delay", type=float, default=0.0, help="milliseconds that the network takes each way")
    parser.add_argument("--megabytes", type=int, default=50, help="size of much output (default 50)")
    options = parse(parser, keys=10, rounds=1, megabytes=1)
    flood = TRICKLE if options.smallest else FLOOD
    from ironcurtain.ssh.key_files import KeyFile
    from tests.fleet.hosts import Fleet
    from tests.ports import free_port
    from tests.product import wait_until

    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        top, key = Path(directory), Path(directory) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(key)], check=True)
        fleet = Fleet(("laptop", "build-3"), roles=(Role.ADMIN,))
        stack.callback(fleet.end)
        laptop, build = fleet.hosts.values()
        for host in (laptop, build):
            host.product.environ["IRONCURTAIN_SSH_PORT"] = str(free_port())
            added = host.product.run("ssh", "add-key", "--roles", "admin", f"{key}.pub")
            assert added.returncode == 0, added.stderr
        trusted = build.home.fleet_trust
        trusted.write_text(trusted.read_text().replace("people = {", 'people = { "*" = ["admin"],'))
        (server,) = (int(address.rpartition(":")[2]) for address in fleet.cluster.addresses)
        delay = options.delay / 1000
        behind = stack.enter_context(distant(server, delay))
        laptop.home.config.write_text(laptop.home.config.read_text().replace(f":{server}", f":{behind}"))
        fleet.begin()
        command = [sys.executable, "-m", "benchmarks.fleet_attach", "--serve", str(build.product.home)]
        owner = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(owner.kill)
        assert owner.stdout is not None
        numbers = [int(owner.stdout.readline()) for _ in range(4)]
        known = {f"build-3/{number}" for number in numbers}
        wait_until(lambda: known.issubset(laptop.product.run("sessions").stdout.split()))
        near, far = (int(host.product.environ["IRONCURTAIN_SSH_PORT"]) for host in (build, laptop))
        attach = laptop.product.command("attach")
        plain = stack.enter_context(sshd(top / "sshd", key, f"sh -c {shell_word(PROGRAM)}"))
        plain, near = (stack.enter_context(distant(port, delay)) for port in (plain, near))
        ways = {
            WAYS[0]: Terminal(*ssh(plain, key)),
            WAYS[1]: Terminal(*ssh(near, key, f"attach {numbers[0]}")),
            WAYS[2]: Terminal(*attach, f"build-3/{numbers[1]}", environ=laptop.product.environ),
            WAYS[3]: Terminal(*ssh(far, key, f"attach build-3/{numbers[2]}")),
        }
        for terminal in ways.values():
            terminal.quiet()
            terminal.type(b"ready?")
            terminal.until(b"ready?")
            terminal.type(b"\x15")
            terminal.quiet()
        measure(ways, options, WAYS[0])
        for terminal in reversed(ways.values()):  # each has a copy of those before it
            terminal.close()
        there = f"build-3/{numbers[3]}"
        commands = {WAYS[2]: (*attach, there), WAYS[3]: ssh(far, key, f"attach {there}")}
        environ = laptop.product.environ
        for name, words in commands.items():
            terminal = Terminal(*words, environ=environ)
            terminal.quiet()
            check_output(name, terminal, options.megabytes * 1_000_000, flood)
            terminal.close()
            check_detach(name, words, environ)
        trust_there = trusted.read_text()
        one = Watched(*commands[WAYS[2]], environ=environ)
        check_revoked("trust of build-3 in laptop", one, lambda: trusted.write_text("version = 1\n"))
        trusted.write_text(trust_there)
        time.sleep(SETTLE_SECONDS)
        one = Watched(*commands[WAYS[3]], environ=environ)
        authorized = KeyFile.of(laptop.home).path
        keys_there = authorized.read_text()
        check_revoked("key at laptop", one, lambda: authorized.write_text(""))
        authorized.write_text(keys_there)
        for victim, other in ((build, laptop), (laptop, build)):
            watched = {name: Watched(*words, environ=environ) for name, words in commands.items()}
            for terminal in watched.values():
                interrupt(terminal)
            next(iter(watched.values())).type(flood)
            for terminal in watched.values():
                terminal.until(b"y\r\ny")
            start = time.monotonic()
            victim.end(signal.SIGKILL)
            for name, terminal in watched.items():
                end = terminal.rest()
                restored(name, end)
                found = re.findall(rb"[^\r\n\x1b\x0f]*(?:lost|answer|closed by|ended \d+)[^\r\n]*", end)[-3:]
                after, said = time.monotonic() - start, b" / ".join(found).decode()
                print(f"{name}, {victim.name} killed: over after {after:.1f} s: {said}", flush=True)
            if options.smallest:
                break
            victim.begin()
            wait_until(lambda: other.sees(victim.name, "here"))  # noqa: B023
            time.sleep(SETTLE_SECONDS)
            wait_until(lambda: there in laptop.product.run("sessions").stdout)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        main()
