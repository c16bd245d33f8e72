"""Log in at a model's provider with the agent's own program, in a container that reaches nothing but the login."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall

from ironcurtain.accounts.login import Login
from ironcurtain.accounts.login_files import FILE_LIMIT, read_login
from ironcurtain.accounts.login_programs import LoginProgram, claude_owner
from ironcurtain.agents import adapter as surroundings
from ironcurtain.container.engine import Engine
from ironcurtain.container.proven_ports import ProvenPorts
from ironcurtain.container.proxy_listener import ProxyListener
from ironcurtain.container.screened import ScreenedContainer
from ironcurtain.container.sidecar import Sidecar, SocketWay
from ironcurtain.container.spec import ContainerSpec
from ironcurtain.container.terminal import ContainerTerminal, waiting
from ironcurtain.container_agent.leftovers import clear
from ironcurtain.container_agent.login_proxy import LoginProxy
from ironcurtain.container_agent.provision import Placer, describe, prepare
from ironcurtain.container_agent.screen import TERMINAL
from ironcurtain.errors import ConfigurationError, NotFound, Unavailable
from ironcurtain.files.locks import FileLock, locked
from ironcurtain.files.removal import remove
from ironcurtain.home.account_sections import AccountName
from ironcurtain.home.layout import Home, account_directory, private_directory
from ironcurtain.home.sections import Resources
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.network.relay import Dialer
from ironcurtain.process.accounts import Account
from ironcurtain.process.identity import identify
from ironcurtain.services import unix_socket
from ironcurtain.services.client_limits import ClientAdmission
from ironcurtain.services.stream import Wrap, itself, serve
from ironcurtain.terminal.guard import Guard
from ironcurtain.terminal.local import LocalTerminal
from ironcurtain.terminal.model import ProgramExit

LOOK_SECONDS: Final = 0.5
"""Seconds between two looks for a login that is complete."""

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LoginSurroundings(msgspec.Struct, frozen=True):
    """
    :ivar account: of the container; not root.
    :ivar way: how the container reaches this process.
    :ivar ensure_image: returns a reference to an agent's image, and reports progress.
    :ivar progress: called with lines for people, before the terminal is used.
    """

    reactor: Any
    home: Home
    engine: Engine
    dialer: Dialer
    account: Account
    way: SocketWay
    resources: Resources
    ensure_image: Callable[[str, Callable[[str], None]], Awaitable[str]]
    progress: Callable[[str], None]


class AccountLogin:
    """
    One login. Nothing of it stays outside of the returned value.

    :param program: the one of :data:`ironcurtain.accounts.login_programs.PROGRAMS` for the account.
    """

    def __init__(self, name: AccountName, program: LoginProgram, around: LoginSurroundings) -> None:
        self._name, self._program, self._around = name, program, around
        self._id = str(uuid.uuid4())
        private_directory(around.home.accounts)
        self._paths = SessionPaths(private_directory(around.home.logins) / self._id)
        self._run = around.home.session_run(self._id)
        self._problems: list[str] = []

    async def run(self, terminal: LocalTerminal) -> Login:
        """
        Run the program at this process's terminal until it has logged in.

        :raises NotFound: it ended without a login.
        :raises EngineUnavailable: there is no Docker Engine.
        """
        around = self._around
        await around.engine.ping()
        for line in await clear(around.engine, around.home):
            around.progress(line)
        image = await around.ensure_image(self._program.agent, around.progress)
        with self._directories():
            proxy = LoginProxy(self._program.hosts, around.dialer, self._problems.append)
            owner = (around.account.uid, around.account.gid)
            listener = await unix_socket.listen(self._run.mitm_socket, proxy, owner)
            try:
                spec = await self._spec(image)
                around.progress(self._program.advice)
                ended = await self._at(terminal, spec, proxy)
            finally:
                await listener.stop()
                proxy.close()
            return self._result(ended)

    def _result(self, ended: ProgramExit) -> Login:
        try:
            login = self._login()
        except ConfigurationError as e:
            raise Unavailable(f"the login at {self._name} cannot be used: {e}") from None
        if login is None:
            reasons = "; ".join(dict.fromkeys(self._problems)) or f"the program ended: {ended.reason}"
            raise NotFound(f"nobody logged in, and nothing was kept: {reasons}")
        return login

    def _login(self) -> Login | None:
        """:returns: what the program has kept; ``None`` if there is nothing yet."""
        found = read_below(self._paths.agent_home, self._program.file)
        if found is None:
            return None
        login = read_login(self._name, f"ironcurtain login {self._name}", found)
        facts = read_below(self._paths.agent_home, self._program.facts_file) if self._program.facts_file else None
        return replace(login, owner=login.owner or claude_owner(facts or b""))

    async def _at(self, terminal: LocalTerminal, spec: ContainerSpec, proxy: LoginProxy) -> ProgramExit:
        engine, reactor = self._around.engine, self._around.reactor
        stream = ContainerTerminal(engine, *terminal.size())
        over: Deferred[ProgramExit] = Deferred()
        stream.owner = _Shown(terminal, stream)
        sidecar = Sidecar(engine, self._around.way, partial(self._open_ports, proxy), lambda why: None)
        listener = ProxyListener(engine, self._around.way, partial(_serve, proxy))
        container = ScreenedContainer(engine, spec, stream, over.callback, sidecar, listener)
        guard = Guard()
        guard.begin(0)
        try:
            terminal.begin(_Typed(stream))
            await container.start()
            looking = LoopingCall(self._look, container, terminal)
            looking.clock = reactor
            looking.start(LOOK_SECONDS, now=False)
            try:
                return await over
            finally:
                looking.stop()
                await container.stop()
        finally:
            terminal.close(None)
            if terminal.connected:
                await terminal.closed
            guard.end()

    async def _open_ports(self, proxy: LoginProxy, address: str) -> ProvenPorts:
        ports = ProvenPorts(self._around.reactor)
        await ports.open(address, self._run.mitm_socket.name, partial(_serve, proxy))
        return ports

    def _look(self, container: ScreenedContainer, terminal: LocalTerminal) -> Deferred[None] | None:
        complete = False
        with suppress(ConfigurationError):  # it is being written
            complete = not self._program.ends and self._login() is not None
        return Deferred.fromCoroutine(container.stop()) if complete or not terminal.connected else None

    async def _spec(self, image: str) -> ContainerSpec:
        around, program = self._around, self._program
        # Nothing is decrypted, so that the certificates of the system are the right ones.
        certificates = (surroundings.CA_FILE, surroundings.CA_BUNDLE)
        everywhere = {k: v for k, v in surroundings.environment().items() if v not in certificates}
        return describe(
            session_id=self._id,
            image=image,
            command=waiting(program.argv),
            tty=True,
            account=around.account,
            environment={**everywhere, **TERMINAL, **program.environment},
            workspace=self._paths.sandbox,
            places=(surroundings.WORKSPACE,),
            further=(),
            paths=self._paths,
            run=self._run,
            resources=around.resources,
            processors=await around.engine.processors(),
            home=around.home.path,
            owner=identify(),
        )

    @contextmanager
    def _directories(self) -> Iterator[None]:
        account, lock = self._around.account, FileLock(self._paths.lock)
        with locked(self._around.home.logins_lock):  # nobody must take it for what a dead process left
            private_directory(self._paths.directory)
            lock.acquire()
        try:
            prepare(self._paths, account)
            account_directory(self._paths.sandbox, account.uid, account.gid)
            private_directory(self._run.directory)
            account_directory(self._run.agent, account.uid, account.gid)
            placer = Placer(self._paths.agent_home, account.uid, account.gid, writable=True)
            for path, content in self._program.files.items():
                placer.place(path, content.encode())
            yield
        finally:
            remove(self._paths.directory)
            shutil.rmtree(self._run.directory, ignore_errors=True)
            lock.release()


async def _serve(proxy: LoginProxy, listening: socket.socket, wrap: Wrap = itself) -> asyncio.Server:
    return await serve(listening, wrap(proxy), ClientAdmission())


class _Typed:
    """Passes on what a person types at this process's terminal, and its size."""

    def __init__(self, stream: ContainerTerminal) -> None:
        self._stream = stream

    def received(self, read: bytes) -> None:
        self._stream.write(read)

    def resized(self, columns: int, rows: int) -> None:
        self._stream.resize(columns, rows)

    def drained(self) -> None:
        self._stream.resume()

    def lost(self) -> None:
        self._stream.flow()  # the container ends soon, see :meth:`AccountLogin._look`


class _Shown:
    """Shows what the program writes."""

    def __init__(self, terminal: LocalTerminal, stream: ContainerTerminal) -> None:
        self._terminal, self._stream = terminal, stream

    def received(self, data: bytes) -> None:
        self._terminal.write(data)
        if self._terminal.blocked:
            self._stream.pause()

    def input_full(self, full: bool) -> None:
        self._terminal.hold(full)


def read_below(top: Path, path: str) -> bytes | None:
    """
    Read a file of a program that is not trusted: no link is followed, and nothing is waited for.

    :param path: below the directory ``top``, with ``/`` between names.
    :returns: its content, one byte more than allowed at most; ``None`` if there is no such regular file.
    """
    *above, name = path.split("/")
    opened: list[int] = []
    try:
        opened.append(os.open(top, _DIRECTORY))
        for part in above:
            opened.append(os.open(part, _DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            return None
        with open(os.dup(opened[-1]), "rb") as file:
            return file.read(FILE_LIMIT + 1)
    except OSError:
        return None
    finally:
        for descriptor in opened:
            os.close(descriptor)
