"""The targets of the hostile program, and the check from outside whether it reached them."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, chdir, nullcontext, suppress
from pathlib import Path
from types import TracebackType

import msgspec

from ironcurtain.home.layout import SOCKET_PATH_LIMIT
from ironcurtain.platform.memory import available_memory
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox.system_calls import numbers

MANY_PROCESSES = 3000
"""Number of processes that the program tries to start: more than any sandbox or container permits."""


FILLING = "take more than all its memory by memory files, shared memory and processes"
"""The attempt to use more memory than a sandbox may."""

SPARE = 1 << 30
"""Bytes of memory that must be left for others while a sandbox uses all that it may."""


class Room(msgspec.Struct, frozen=True):
    """
    :param memory: bytes of memory that all processes of a sandbox may use together.
    :param temporary: bytes of each directory in memory.
    """

    memory: int
    temporary: int

    def untried(self) -> tuple[str, ...]:
        """:returns: :data:`FILLING`, if this machine cannot spare the memory."""
        found = available_memory()
        return () if found is None or found > self.memory + SPARE else (FILLING,)


class Isolation(msgspec.Struct, frozen=True):
    """
    What a kind of sandbox has besides, and is looked at inside: an attempt may fail because something else holds.

    :param namespaces: names of those that it does not share with this process.
    :param limits: names of limits of resources (setrlimit(2)), and the most that each may be.
    :param writable: the mounts that may be written; empty: that is not looked at.
    """

    namespaces: Set[str] = frozenset()
    limits: Mapping[str, int] = msgspec.field(default_factory=dict)
    writable: Sequence[str] = ()


class Outside:
    """
    A file with a secret, sockets and a process outside the sandbox. A context manager.

    :param home: absolute path of a directory of the user, below which the file is created.
    :param account: the account that tries to reach it, which may do anything with the file; ``None``: this process's.
    """

    def __init__(self, home: Path, account: Account | None = None) -> None:
        self._home, self._account, self._open = home, account, ExitStack()
        self.secret, self._marker = f"secret-{secrets.token_hex(16)}", f"marker-{secrets.token_hex(8)}"

    def __enter__(self) -> Outside:
        try:
            self._make()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def _make(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="ironcurtain-prove-", dir=self._home))
        self._open.callback(shutil.rmtree, self._directory, ignore_errors=True)
        self._directory.chmod(0o755)  # so that nothing but the sandbox prevents access
        self.file = self._directory / f"outside-{secrets.token_hex(4)}"
        self.file.write_text(f"{self.secret}\n")
        self.file.chmod(0o666)
        if self._account is not None:
            with suppress(PermissionError):  # root in a container may not even change owners
                os.chown(self._directory, self._account.uid, self._account.gid)
        self._content = self.file.read_bytes()
        descriptor, name = tempfile.mkstemp(prefix="ironcurtain-prove-left-")
        os.close(descriptor)
        self._left = Path(name)
        self._open.callback(self._left.unlink, missing_ok=True)
        self._left.write_text(f"{self.secret}\n")
        self._left.chmod(0o644)
        self._tcp = self._listening(socket.AF_INET, ("127.0.0.1", 0))
        self._tcp6 = self._listening(socket.AF_INET6, ("::1", 0)) if socket.has_ipv6 else None
        self._datagrams = self._bound(socket.AF_INET, socket.SOCK_DGRAM, self._tcp.getsockname())
        place = self._directory / "socket"
        is_long = len(os.fsencode(place)) > SOCKET_PATH_LIMIT
        with chdir(self._directory) if is_long else nullcontext():
            self._unix = self._listening(socket.AF_UNIX, place.name if is_long else str(place))
        place.chmod(0o666)
        self._abstract = self._listening(socket.AF_UNIX, f"\0{self._marker}")
        self._process = subprocess.Popen(["/bin/sh", "-c", "read -r line", self._marker], stdin=subprocess.PIPE)
        self._open.callback(self._end_process)

    def _end_process(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()

    def _listening(self, family: int, address: tuple[str, int] | str) -> socket.socket:
        made = self._bound(family, socket.SOCK_STREAM, address)
        made.listen(64)
        return made

    def _bound(self, family: int, kind: int, address: tuple[str, int] | str) -> socket.socket:
        made = self._open.enter_context(socket.socket(family, kind))
        made.bind(address)
        made.setblocking(False)
        return made

    def targets(
        self,
        workspace: str,
        room: Room,
        isolation: Isolation,
        may_be_root: bool = False,
        unlimited: Mapping[str, str] = {},
    ) -> str:
        """
        :param workspace: path of the workspace for the program; empty: its temporary directory.
        :param room: what it may use.
        :param isolation: what keeps it in besides.
        :param may_be_root: whether the configuration permits it to run as root.
        :param unlimited: attempts against limits that do not exist here, which it does not make, with the reason.
        :returns: the program's argument.
        """
        return json.dumps(
            {
                "secret": self.secret,
                "file": str(self.file),
                "workspace": workspace,
                "places": [(str(place.parent), place.name) for place in (self._directory, self.file, self._left)],
                "left": str(self._left),
                "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in sorted(isolation.namespaces)},
                "limits": dict(isolation.limits),
                "writable": list(isolation.writable),
                "port": self._tcp.getsockname()[1],
                "port6": self._tcp6.getsockname()[1] if self._tcp6 is not None else 1,
                "addresses": _addresses(),
                "socket": str(self._directory / "socket"),
                "abstract": self._marker,
                "marker": self._marker,
                "pid": self._process.pid,
                "root": may_be_root,
                "many": MANY_PROCESSES,
                "unlimited": dict(unlimited),
                "untried": list(room.untried()),
                "memory": room.memory,
                "temporary": room.temporary,
                "calls": numbers(),
            }
        )

    def seen(self) -> Iterator[str]:
        """:returns: each trace of the program outside; empty if the sandbox held."""
        if not self._is_as_it_was():
            yield "the file outside was changed"
        if len(os.listdir(self._directory)) != 2:
            yield "files were made outside"
        if _is_connected(self._unix):
            yield "a connection came to a UNIX socket"
        yield from self._network_traces()
        if self._process.poll() is not None:
            yield "a process outside was ended"

    def _network_traces(self) -> Iterator[str]:
        for name, listener in (
            ("by IPv4", self._tcp),
            ("by IPv6", self._tcp6),
            ("to an abstract socket", self._abstract),
        ):
            if listener is not None and _is_connected(listener):
                yield f"a connection came {name}"
        with suppress(BlockingIOError):
            self._datagrams.recv(100)
            yield "a datagram came"

    def _is_as_it_was(self) -> bool:
        try:
            return not os.path.islink(self.file) and self.file.read_bytes() == self._content
        except OSError:  # it is gone
            return False


def _is_connected(listener: socket.socket) -> bool:
    """:returns: whether connections came; they are closed."""
    found = False
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
            found = True
    return found


def _addresses() -> list[str]:
    """:returns: the IPv4 addresses of this machine."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except OSError:
        return []
    return sorted({str(address[0]) for *_, address in found} - {"127.0.0.1"})
