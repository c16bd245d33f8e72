"""A service on a free port of the loopback address, OpenSSH's client, and programs that say what reaches them."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations import Principal, Role
from ironcurtain.operations.api import LocalApi
from ironcurtain.operations.operations import Operations
from ironcurtain.session.elsewhere import session_directory
from ironcurtain.session.recorded_summary import summary_of
from ironcurtain.session.summary import SessionSummary
from ironcurtain.session.verification import verify_records
from ironcurtain.ssh.attaching import Attaching
from ironcurtain.ssh.authorized_keys import AuthorizedKey, public_key
from ironcurtain.ssh.channel import ChannelProgram, SessionChannel
from ironcurtain.ssh.key_files import KeyFile, host_key
from ironcurtain.ssh.programs import OwnPrograms
from ironcurtain.ssh.service import SshService
from ironcurtain.terminal.model import Mode
from tests.session.doubles import NOW, World

reactor: Any = installed


class Speaker:
    """
    Says what reaches it, one line each. ``q`` ends it with status 7, ``h`` holds the input, ``b`` is a bug.

    :param greeting: its first line.
    """

    def __init__(self, channel: SessionChannel, greeting: str) -> None:
        self.channel = channel
        self.heard = b""
        self.was_lost = False
        self.say(f"{greeting} {channel.size()} {channel.environ.get('TERM')}")

    def say(self, text: str) -> None:
        """Write a line."""
        self.channel.write(f"{text}\r\n".encode())

    def received(self, data: bytes) -> None:
        """Say it, or do it."""
        self.heard += data
        if data == b"h":
            self.channel.hold(True)
        elif data == b"b":
            raise RuntimeError("a bug")
        elif b"q" in data:
            self.channel.close(7)
        else:
            self.say(f"typed {data!r}")

    def resized(self, columns: int, rows: int) -> None:
        """Say it."""
        self.say(f"resized {columns}x{rows}")

    def drained(self) -> None:
        """It writes little."""

    def lost(self) -> None:
        """Remember it."""
        self.was_lost = True


class Bulk:
    """Writes as many numbered lines of 64 bytes as it is told, as fast as they are taken."""

    def __init__(self, channel: SessionChannel, lines: int) -> None:
        self.channel, self.lines, self.written = channel, lines, 0

    def received(self, data: bytes) -> None:
        """Nothing is asked."""

    def resized(self, columns: int, rows: int) -> None:
        """Of no interest."""

    def drained(self) -> None:
        """Write on."""
        while not self.channel.blocked:
            if self.written >= self.lines:
                self.channel.close(0)
                return
            some = range(self.written, min(self.written + 512, self.lines))
            self.written += len(some)
            self.channel.write(b"".join(b"%063d\n" % number for number in some))

    def lost(self) -> None:
        """Write no more."""
        self.lines = 0


@dataclass
class Holder:
    """Somebody with a key in a file."""

    path: Path
    key: AuthorizedKey


def make_holder(directory: Path, name: str, roles: Sequence[Role] = (Role.ADMIN,), rsa: bool = False) -> Holder:
    """:returns: somebody whose key is in no list yet."""
    made: RSAPrivateKey | Ed25519PrivateKey = generate_private_key(65537, 2048) if rsa else Ed25519PrivateKey.generate()
    path = directory / name
    path.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    path.chmod(0o600)
    public = made.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    Path(f"{path}.pub").write_text(f"{public} {name}\n")
    return Holder(path, public_key(public, frozenset(roles), name))


def set_size(fd: int, columns: int, rows: int) -> None:
    """Give a terminal a size."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


@dataclass
class Client(ProcessProtocol):
    """One run of ``ssh``."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    status: int | None = None
    ended: Deferred[Client] = field(default_factory=Deferred)
    _wanted: list[tuple[bytes, Deferred[None]]] = field(default_factory=list)

    def outReceived(self, data: bytes) -> None:
        """Keep it."""
        self.out += data
        self._look()

    def errReceived(self, data: bytes) -> None:
        """Keep it."""
        self.err += data
        self._look()

    def processEnded(self, reason: Failure) -> None:
        """Tell how."""
        ended: Any = reason.value
        self.status = ended.exitCode
        self.ended.callback(self)

    def until(self, text: bytes) -> Deferred[None]:
        """:returns: fires when a text has come."""
        found: Deferred[None] = Deferred()
        self._wanted.append((text, found))
        self._look()
        return found

    def type(self, data: bytes) -> None:
        """Type at the client's terminal."""
        assert self.transport is not None
        self.transport.write(data)

    def resize(self, columns: int, rows: int) -> None:
        """Give the client's terminal another size; the kernel tells it so by SIGWINCH."""
        set_size(self.transport.fd, columns, rows)  # type: ignore[union-attr]

    def kill(self) -> None:
        """End it, if it runs."""
        transport: IProcessTransport | None = self.transport
        try:
            if transport is not None:
                transport.signalProcess("KILL")
        except ProcessExitedAlready:
            pass

    def _look(self) -> None:
        for wanted in list(self._wanted):
            if wanted[0] in self.out or wanted[0] in self.err:
                self._wanted.remove(wanted)
                wanted[1].callback(None)


class Server:
    """
    The service with a world of sessions behind it.

    :param path: a directory for it, with a short name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.world = World(path, reactor=reactor)
        self.home = self.world.home
        self.home.prepare()
        self.operations = Operations(self.world.manager)
        self.attaching: Attaching | None = None
        self.source: type[LocalApi] = LocalApi
        self.speakers: list[Speaker] = []
        self.lacking: list[str] = []
        self.bulk: list[Bulk] = []
        self.keys = KeyFile.of(self.home)
        programs = OwnPrograms(
            self._console,
            self._attach,
            lambda who: self.source(self.operations, who),
            self._files,
            self._report,
            lambda: NOW,
            lambda source: self.lacking,
            list,
        )
        self.service = SshService(reactor, self.home, ["127.0.0.1"], 0, programs)
        self.clients: list[Client] = []

    async def _files(self, who: Principal, name: str) -> SessionPaths:
        return session_directory(self.home, name)

    async def _report(self, who: Principal, name: str) -> SessionSummary:
        (judged,) = verify_records(self.home, (), chosen=[session_directory(self.home, name)]).sessions
        return summary_of(judged)

    async def start(self) -> None:
        """Listen."""
        await self.service.start()
        self.known_hosts = self.path / "known_hosts"
        self.known_hosts.write_text(f"[127.0.0.1]:{self.service.ports[0]} {host_key(self.home).public}\n")

    async def stop(self) -> None:
        """End everything."""
        for client in self.clients:
            client.kill()
        for client in self.clients:
            if client.status is None and not client.ended.called:
                await client.ended
        await self.service.stop()

    def listed(self, name: str, *roles: Role, rsa: bool = False) -> Holder:
        """:returns: somebody who may come in."""
        holder = make_holder(self.path, name, roles or (Role.ADMIN,), rsa)
        self.keys.add(holder.key)
        return holder

    def ssh(self, holder: Holder, *words: str, terminal: tuple[int, int] | None = None) -> Client:
        """
        Run the client.

        :param words: more options, then perhaps ``--`` and a command.
        :param terminal: columns and rows of a terminal of its own.
        """
        options, command = (words, ()) if "--" not in words else _split(words)
        fixed = {
            "BatchMode": "yes",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(self.known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
        }
        chosen = [part for name, value in fixed.items() for part in ("-o", f"{name}={value}")]
        where = ["-p", str(self.service.ports[0]), "127.0.0.1"]
        arguments = ["ssh", "-F", "none", "-e", "none", *chosen, "-i", str(holder.path), *options, *where, *command]
        client = Client()
        self.clients.append(client)
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.path), "TERM": "xterm-256color"}
        if terminal:
            master, slave = os.openpty()
            set_size(master, *terminal)
            reactor.spawnProcess(client, "ssh", arguments, environ, usePTY=(master, slave, os.ttyname(slave)))
        else:
            reactor.spawnProcess(client, "ssh", arguments, environ)
        return client

    def _console(self, who: Principal, channel: SessionChannel) -> ChannelProgram:
        self.speakers.append(Speaker(channel, f"console for {who.name}"))
        return self.speakers[-1]

    async def _attach(self, who: Principal, session: str, mode: Mode, channel: SessionChannel) -> ChannelProgram:
        if session.startswith("bulk"):
            self.bulk.append(Bulk(channel, int(session.removeprefix("bulk"))))
            return self.bulk[-1]
        if self.attaching is not None:
            return await self.attaching.attach(who, session, mode, channel)
        info = self.operations.session(who, int(session))
        self.speakers.append(Speaker(channel, f"{mode} {info.label} for {who.name}"))
        return self.speakers[-1]


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    at = words.index("--")
    return words[:at], words[at + 1 :]
