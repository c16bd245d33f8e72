"""
The pool of interpreter processes: shared by all sessions of this process, and opened on demand.

For root it has a pool per account. It stays open until the process ends. A process that ever opened it should exit with
``os._exit`` after flushing: in about one of ten cases the client library (pydantic-monty 1.4.0) aborts while Python
finalises.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_monty import AsyncMonty, AsyncMontySession, ExternalModule, ResourceLimits

from ironcurtain.codemode.diagnostics import BUILTINS
from ironcurtain.codemode.model import CodeLimits
from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.process.identity import identify
from ironcurtain.sandbox import bubblewrap
from ironcurtain.sandbox.spec import Sandbox
from ironcurtain.services.asyncio_bridge import from_asyncio

PROCESS_LIMIT = 64
"""Maximum number of interpreter processes, one per session (about 8 MB each)."""

WAIT_SECONDS = 10.0
"""Seconds that a session waits for a free process."""

TURN_SECONDS = 20.0
"""Seconds in which a process has to answer before it is killed, whatever its own limits are."""

DIRECTORY = "ironcurtain-interpreter-"
"""Prefix of the names of processes' directories below the temporary directory; uid and pid follow."""

FILTER = "system-calls"
"""Name of the file with the system call filter for bubblewrap, beside the script."""

SETTLE_SECONDS = 0.2
"""Seconds that the library's threads need after closing; without them Python sometimes aborts at exit (75 trials)."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """
    The confinement of interpreter processes, besides the interpreter's own.

    :param bubblewrap: whether they run in bubblewrap, without files and network.
    :param reason: why not, if not.
    """

    bubblewrap: bool
    reason: str | None


def confinement(account: Account | None = None) -> Confinement:
    """
    Find the confinement of interpreter processes. Runs a program the first time (see ``bubblewrap``).

    :param account: the account that they run as; ``None``: that of this process.
    """
    reason = bubblewrap.available(account)
    return Confinement(reason is None, reason)


@dataclass(frozen=True, slots=True)
class _Opened:
    monty: AsyncMonty
    directory: str | None


class Pool:
    """The pool. Its methods are coroutines of asyncio."""

    def __init__(self) -> None:
        self.ever_opened = False
        self._lock = asyncio.Lock()
        self._opened: dict[Account | None, _Opened] = {}

    async def checkout(
        self, modules: Mapping[str, ExternalModule], limits: CodeLimits, account: Account | None = None
    ) -> AsyncMontySession:
        """
        Start a session in a process of its own.

        :param modules: the modules that its programs can import, besides the standard ones.
        :param account: the account that the process runs as; ``None``: that of this process.
        :raises Unavailable: the process cannot be started, or too many are in use.
        """
        monty = await self._open(account)
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
        """
        End all processes, and wait until the library's threads have ended. The next checkout opens the pool again.
        """
        async with self._lock:
            if not self._opened:
                return
            for account in list(self._opened):
                opened = self._opened.pop(account)
                await opened.monty.__aexit__(None, None, None)
                if opened.directory is not None:
                    await asyncio.to_thread(shutil.rmtree, opened.directory, ignore_errors=True)
            await asyncio.sleep(SETTLE_SECONDS)

    async def _open(self, account: Account | None) -> AsyncMonty:
        async with self._lock:
            if account not in self._opened:
                self._opened[account] = await self._start(account)
            return self._opened[account].monty

    async def _start(self, account: Account | None) -> _Opened:
        try:
            program, directory = await asyncio.to_thread(_program, account)
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


def _program(account: Account | None) -> tuple[str, str | None]:
    """:returns: the program that the pool starts, and the directory created for it, if any."""
    interpreter = _interpreter()
    if not confinement(account).bubblewrap and account is None:
        return interpreter, None
    script_text = wrapper(interpreter, account)
    _sweep()
    directory = tempfile.mkdtemp(prefix=f"{DIRECTORY}{os.geteuid()}-{os.getpid()}-")
    path = os.path.join(directory, "interpreter")
    Path(directory, FILTER).write_bytes(bubblewrap.inputs(Sandbox())[bubblewrap.FILTER_DESCRIPTOR])
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    with os.fdopen(descriptor, "w") as script:
        script.write(script_text)
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
        with suppress(FileNotFoundError):  # another process is cleaning up, too
            if path.lstat().st_uid == os.geteuid() and pid.isdigit() and not identify(int(pid)).alive:
                shutil.rmtree(path, ignore_errors=True)


def _interpreter() -> str:
    installed = os.path.join(sysconfig.get_path("scripts"), "monty")
    found = installed if os.path.isfile(installed) else shutil.which("monty")
    if found is None:
        raise Unavailable("the program monty is missing; install the package pydantic-monty-runtime")
    return found


def wrapper(interpreter: str, account: Account | None = None) -> str:
    """
    Create a shell script that runs the interpreter in bubblewrap; the pool takes the path of one program, without
    arguments.

    The script starts with an empty environment, so all paths in it are absolute. The file :data:`FILTER` must be beside
    it.

    :param account: the account that the interpreter runs as, if not that of this process; then also if bubblewrap does
        not work.
    :raises Unavailable: without bubblewrap, this account cannot access the interpreter.
    """
    real = os.path.realpath(interpreter)
    if account is None or confinement(account).bubblewrap:
        command = bubblewrap.command(replace(sandbox(account), read=(real,)), [real])
        opened = f' {bubblewrap.FILTER_DESCRIPTOR}<"${{0%/*}}/{FILTER}"'
    else:
        command, opened = account.command([real]), ""
        _require_reach(real, account)
    return f'#!/bin/sh\nexec {shlex.join(command)} "$@"{opened}\n'


def sandbox(account: Account | None = None) -> Sandbox:
    """:returns: the contents of the sandbox of interpreter processes, besides their program."""
    return Sandbox(account=account)


def _require_reach(program: str, account: Account) -> None:
    trial = account.command(["/bin/sh", "-c", '[ -x "$1" ]', "sh", program])
    if subprocess.run(trial, env={}, capture_output=True, timeout=WAIT_SECONDS, check=False).returncode:
        raise Unavailable(
            f"{account}, as whom this session runs, cannot execute {program}: install bubblewrap, or IronCurtain where "
            "others reach it, or set run_as in config.toml"
        )


shared = Pool()
"""The pool of this process."""


async def close_pool() -> None:
    """Close the shared pool, if it is open. For Deferred coroutines."""
    await from_asyncio(shared.close())


def ever_opened() -> bool:
    """Whether this process should end by ``os._exit``."""
    return shared.ever_opened
