"""
The pool of interpreter processes: shared by all sessions of this process, and opened on demand.

It has a part for each sandbox; those of root's sessions differ by their accounts. It stays open until the process ends.
A process that ever opened it should exit with ``os._exit`` after flushing: in about one of ten cases the client library
(pydantic-monty 1.4.0) aborts while Python finalises.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sysconfig
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace
from pydantic_monty import AsyncMonty, AsyncMontySession, ExternalModule, ResourceLimits
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from ironcurtain.codemode.diagnostics import BUILTINS
from ironcurtain.codemode.model import CodeLimits
from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.process.identity import identify
from ironcurtain.process.search_path import host_program
from ironcurtain.sandbox import cgroups, programs
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.services.asyncio_bridge import from_asyncio

PROCESS_LIMIT = 64
"""Maximum number of interpreter processes, one per session (about 8 MB each)."""

WAIT_SECONDS = 10.0
"""Seconds that a session waits for a free process."""

TURN_SECONDS = 20.0
"""Seconds in which a process has to answer before it is killed, whatever its own limits are."""

DIRECTORY = "ironcurtain-interpreter-"
"""Prefix of the names of processes' directories below the temporary directory; uid and pid follow."""

SETTLE_SECONDS = 0.2
"""Seconds that the library's threads need after closing; without them Python sometimes aborts at exit (75 trials)."""


class _Opened(msgspec.Struct, frozen=True):
    monty: AsyncMonty
    directory: str


class Pool:
    """The pool. Its methods are coroutines of asyncio."""

    def __init__(self) -> None:
        self.ever_opened = False
        self._lock = asyncio.Lock()
        self._opened: dict[Sandbox, _Opened] = {}

    async def checkout(
        self, modules: Mapping[str, ExternalModule], limits: CodeLimits, around: Sandbox
    ) -> AsyncMontySession:
        """
        Start a session in a process of its own.

        :param modules: the modules that its programs can import, besides the standard ones.
        :param around: the sandbox that the process runs in; see :func:`sandbox`.
        :raises Unavailable: the process cannot be started, or too many are in use.
        """
        monty = await self.open(around)
        session = monty.checkout(
            limits=_limits(limits),
            type_check=True,
            type_check_format="json",
            type_check_stubs=BUILTINS,
            external_modules=modules,
            os_policy={"sleep": "system", "sleep_system_max": float("inf")},  # their sum is limited instead
        )
        try:
            await session.__aenter__()
        except TimeoutError:
            raise Unavailable(f"all {PROCESS_LIMIT} interpreter processes are in use; close a session") from None
        except (OSError, RuntimeError) as e:
            raise Unavailable(f"the interpreter for programs cannot be started: {e}") from e
        return session

    async def close(self) -> None:
        """End all processes. The next checkout opens the pool again."""
        async with self._lock:
            if not self._opened:
                return
            for around in list(self._opened):
                opened = self._opened.pop(around)
                await opened.monty.__aexit__(None, None, None)
                await asyncio.to_thread(shutil.rmtree, opened.directory, ignore_errors=True)
            await asyncio.to_thread(cgroups.settle)

    async def open(self, around: Sandbox) -> AsyncMonty:
        """
        Start a first process, unless that was done.

        :raises Unavailable: it cannot be started.
        """
        async with self._lock:
            if around not in self._opened:
                self._opened[around] = await self._start(around)
            return self._opened[around].monty

    async def _start(self, around: Sandbox) -> _Opened:
        try:
            program, directory = await asyncio.to_thread(_program, around)
            monty = AsyncMonty(
                binary_path=program,
                max_processes=PROCESS_LIMIT,
                checkout_timeout=WAIT_SECONDS,
                request_timeout=TURN_SECONDS,
                max_checkouts_per_worker=1,  # a process is never reused by another session
            )
            self.ever_opened = True
            return _Opened(await monty.__aenter__(), directory)
        except (OSError, RuntimeError) as e:
            raise Unavailable(f"the interpreter for programs cannot be started: {e}; see `ironcurtain doctor`") from e


def _limits(limits: CodeLimits) -> ResourceLimits:
    return {
        "max_feed_duration_secs": limits.run_seconds,
        "max_memory": limits.memory_bytes,
        "max_recursion_depth": limits.recursion,
        "max_suspensions": limits.calls,
        "max_total_sleep_secs": limits.sleep_seconds,
    }


def _program(around: Sandbox) -> tuple[str, str]:
    """:returns: the program that the pool starts, and the directory created for it."""
    interpreter = os.path.realpath(interpreter_path())
    around = replace(around, read=(interpreter,))
    _sweep()
    directory = tempfile.mkdtemp(prefix=f"{DIRECTORY}{os.geteuid()}-{os.getpid()}-")
    try:
        for number, content in programs.inputs(around).items():
            Path(directory, str(number)).write_bytes(content)
        path = os.path.join(directory, "interpreter")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        with os.fdopen(descriptor, "w") as script:
            script.write(wrapper(around, interpreter))
        if os.access(path, os.X_OK):  # not on a file system that is mounted noexec
            return path, directory
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)
    raise Unavailable(
        f"programs cannot be started from {tempfile.gettempdir()}; set TMPDIR to a directory that allows it"
    )


def _sweep() -> None:
    """Remove the directories of processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{DIRECTORY}{os.geteuid()}-*"):
        pid = path.name.removeprefix(DIRECTORY).split("-")[1]
        with suppress(FileNotFoundError):  # another process is cleaning up, too
            if path.lstat().st_uid == os.geteuid() and pid.isdigit() and not identify(int(pid)).alive:
                shutil.rmtree(path, ignore_errors=True)


def interpreter_path() -> str:
    """
    :returns: path of the program that runs the built-in agent's programs.
    :raises Unavailable: it is not installed.
    """
    installed = os.path.join(sysconfig.get_path("scripts"), "monty")
    found = installed if os.path.isfile(installed) else host_program("monty")
    if found is None:
        raise Unavailable("the program monty is missing; install the package pydantic-monty-runtime")
    return found


def wrapper(around: Sandbox, interpreter: str) -> str:
    """
    Create a shell script that runs the interpreter in its sandbox; the pool takes the path of one program, without
    arguments.

    The script starts with an empty environment, so all paths in it are absolute. What the sandboxing program reads must
    be in files beside it, named by the numbers of the descriptors.

    :param interpreter: real path of the interpreter, which the sandbox has.
    """
    numbers = programs.inputs(around)
    command = programs.command(around, [interpreter], {number: number for number in numbers})
    opened = "".join(f' {number}<"${{0%/*}}/{number}"' for number in numbers)
    return f'#!/bin/sh\nexec {shlex.join(command)} "$@"{opened}\n'


def sandbox(account: Account | None = None, kind: Kind | None = None) -> Sandbox:
    """:returns: the contents of the sandbox of interpreter processes, besides their program."""
    return Sandbox(account=account, alone=True, kind=kind)


shared = Pool()
"""The pool of this process."""


async def close_pool() -> None:
    """Close the shared pool, if it is open. For Deferred coroutines."""
    await from_asyncio(shared.close())


async def settle(clock: IReactorTime) -> None:
    """Wait until the threads of the closed pool have ended, if the process is not going to end by ``os._exit``."""
    if shared.ever_opened:
        await deferLater(clock, SETTLE_SECONDS)


def ever_opened() -> bool:
    """Whether this process should end by ``os._exit``."""
    return shared.ever_opened
