"""
The interpreter processes: one pool, shared by all sessions of this process, opened when the first needs it.

It stays open as long as the process lives. A process that ever opened it should end by ``os._exit`` once everything is
flushed: in about one of ten cases the client library (pydantic-monty 1.4.0) aborts while Python finalises.
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
from dataclasses import dataclass
from pathlib import Path

from pydantic_monty import AsyncMonty, AsyncMontySession, ExternalModule, ResourceLimits

from ironcurtain import bubblewrap
from ironcurtain.bridge import from_asyncio
from ironcurtain.codemode.diagnostics import BUILTINS
from ironcurtain.codemode.limits import Limits
from ironcurtain.errors import Unavailable
from ironcurtain.identity import identify

PROCESS_LIMIT = 64
"""Most interpreter processes at a time, one a session (our choice; about 8 MB each)."""

WAIT_SECONDS = 10.0
"""How long a session waits for a free process before it is told that there is none."""

TURN_SECONDS = 20.0
"""How long a process may take to answer before it is killed, whatever its own limits say."""

DIRECTORY = "ironcurtain-interpreter-"
"""How the name of a process's directory below the temporary directory begins; uid and pid follow."""

SETTLE_SECONDS = 0.2
"""How long the library's threads need after closing; without, Python aborts now and then at exit (tried, 75 times)."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """
    How interpreter processes are kept from the machine, besides by the interpreter itself.

    :param bubblewrap: whether they run in bubblewrap, without files and network.
    :param reason: if not, why not.
    """

    bubblewrap: bool
    reason: str | None


def confinement() -> Confinement:
    """Find out how interpreter processes are confined here. Runs a program the first time (see ``bubblewrap``)."""
    reason = bubblewrap.available()
    return Confinement(reason is None, reason)


class Pool:
    """The pool. Its methods are coroutines of asyncio."""

    def __init__(self) -> None:
        self.ever_opened = False
        self._lock = asyncio.Lock()
        self._monty: AsyncMonty | None = None
        self._directory: str | None = None

    async def checkout(self, modules: Mapping[str, ExternalModule], limits: Limits) -> AsyncMontySession:
        """
        Start a session in a process of its own.

        :param modules: what its programs can import, besides the standard modules.
        :raises Unavailable: the process cannot be started, or too many are in use.
        """
        monty = await self._open()
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
            raise Unavailable(f"the interpreter for programs does not start: {e}") from e
        return session

    async def close(self) -> None:
        """End all processes, and wait until the library is at rest. The next checkout opens the pool again."""
        async with self._lock:
            if self._monty is None:
                return
            monty, self._monty = self._monty, None
            await monty.__aexit__(None, None, None)
            if self._directory is not None:
                await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)
                self._directory = None
            await asyncio.sleep(SETTLE_SECONDS)

    async def _open(self) -> AsyncMonty:
        async with self._lock:
            if self._monty is None:
                self._monty = await self._opened()
            return self._monty

    async def _opened(self) -> AsyncMonty:
        try:
            program, self._directory = await asyncio.to_thread(_program)
            monty = AsyncMonty(
                binary_path=program,
                max_processes=PROCESS_LIMIT,
                checkout_timeout=WAIT_SECONDS,
                request_timeout=TURN_SECONDS,
                max_checkouts_per_worker=1,  # what one session may have broken, the next does not get
            )
            self.ever_opened = True
            return await monty.__aenter__()
        except (OSError, RuntimeError) as e:
            raise Unavailable(f"the interpreter for programs does not start: {e}; see `ironcurtain doctor`") from e


def _limits(limits: Limits) -> ResourceLimits:
    return {
        "max_feed_duration_secs": limits.run_seconds,
        "max_memory": limits.memory_bytes,
        "max_recursion_depth": limits.recursion,
        "max_suspensions": limits.calls,
        "max_total_sleep_secs": limits.sleep_seconds,
    }


def _program() -> tuple[str, str | None]:
    """:returns: what the pool starts, and the directory that was made for it, if one was."""
    interpreter = _interpreter()
    if not confinement().bubblewrap:
        return interpreter, None
    _sweep()
    directory = tempfile.mkdtemp(prefix=f"{DIRECTORY}{os.geteuid()}-{os.getpid()}-")
    path = os.path.join(directory, "interpreter")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    with os.fdopen(descriptor, "w") as script:
        script.write(wrapper(interpreter))
    if os.access(path, os.X_OK):  # not on a file system that is mounted noexec
        return path, directory
    shutil.rmtree(directory, ignore_errors=True)
    raise Unavailable(
        f"programs cannot be started from {tempfile.gettempdir()}; set TMPDIR to a directory that allows it"
    )


def _sweep() -> None:
    """Remove the directories of processes that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{DIRECTORY}{os.geteuid()}-*"):
        pid = path.name.removeprefix(DIRECTORY).split("-")[1]
        with suppress(FileNotFoundError):  # another process sweeps too
            if path.lstat().st_uid == os.geteuid() and pid.isdigit() and not identify(int(pid)).alive:
                shutil.rmtree(path, ignore_errors=True)


def _interpreter() -> str:
    installed = os.path.join(sysconfig.get_path("scripts"), "monty")
    found = installed if os.path.isfile(installed) else shutil.which("monty")
    if found is None:
        raise Unavailable("the program monty is missing; install the package pydantic-monty-runtime")
    return found


def wrapper(interpreter: str) -> str:
    """
    A shell script that runs the interpreter in bubblewrap; the pool takes the path of one program, without arguments.

    The script is started with an empty environment, so all paths in it are absolute.
    """
    real = os.path.realpath(interpreter)
    command = bubblewrap.Sandbox(read=(real,)).command([real])
    return f'#!/bin/sh\nexec {shlex.join([shutil.which("bwrap") or "bwrap", *command[1:]])} "$@"\n'


shared = Pool()
"""The pool of this process."""


async def close_pool() -> None:
    """Close the shared pool, if it is open. A Deferred-world coroutine."""
    await from_asyncio(shared.close())


def ever_opened() -> bool:
    """Whether this process should end by ``os._exit``."""
    return shared.ever_opened
