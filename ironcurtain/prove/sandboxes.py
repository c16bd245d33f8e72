"""Run hostile programs: in a sandbox, in the container of a session, and in the built-in agent's interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import ExitStack
from importlib import resources
from typing import Any, Protocol

from msgspec.structs import replace

from ironcurtain.codemode.monty import MontyInterpreters
from ironcurtain.container import execution
from ironcurtain.container.engine import Engine
from ironcurtain.container.spec import SESSION_LABEL, WORKSPACE, is_sidecar
from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Kept, Unfinished
from ironcurtain.prove.outside import FILLING, MANY_PROCESSES, Isolation, Outside, Room
from ironcurtain.prove.report import Attempt, Report, parse
from ironcurtain.sandbox import programs, promises
from ironcurtain.sandbox.bubblewrap_options import tasks_of
from ironcurtain.sandbox.handover import Handover
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.spec import Kind, Sandbox

LIMITS = {
    promises.MEMORY: (FILLING,),
    promises.TEMPORARY_SPACE: ("fill the temporary directory with 8 GiB", "fill a directory in memory beyond its size"),
    promises.PROCESSES: (f"start {MANY_PROCESSES} processes",),
}
"""The attempts against limits that not every kind of sandbox has everywhere."""

ONE_PROCESS_FILLING = "take 16 GiB of memory"
"""The attempt to use more memory than one process may."""

NAMESPACES = frozenset(("ipc", "mnt", "net", "pid", "uts"))
"""The namespaces that bubblewrap and containers do not share with this machine."""

SECONDS = 300.0
"""Time limit of the program in seconds (it takes about ten)."""

OUTPUT_LIMIT = 1024 * 1024
"""Most bytes that the program may print (it prints some 30 KB)."""

PARTS = ("common", "files", "git", "network", "processes", "calls", "rights", "devices", "limits", "isolation", "main")
"""The parts of the hostile program, below ``data/hostile``."""

PROGRAMS = (
    ("read a file", "open({file!r}).read()"),
    ("read a file by pathlib", "from pathlib import Path\nPath({file!r}).read_text()"),
    ("list a directory", "import os\nos.listdir('/')"),
    ("read the environment", "import os\nlen(os.environ) and str(os.environ)"),
    ("run a command", "import os\nos.system('id')"),
    ("start a process", "import subprocess\nsubprocess.run(['id'])"),
    ("open a socket", "import socket\nsocket.socket()"),
    ("call the C library", "import ctypes\nctypes.CDLL(None)"),
    ("import by name", "__import__('os').getpid()"),
    ("import by importlib", "import importlib\nimportlib.import_module('os')"),
    ("read a file by evaluating text", "eval('open({file!r}).read()')"),
    ("run a command by executing text", "exec('import os; os.system(\"id\")')"),
    ("find all classes", "().__class__.__bases__[0].__subclasses__()"),
    ("reach a function's globals", "def f(): pass\nf.__globals__"),
    ("reach the frames", "import sys\nsys._getframe()"),
    ("call a tool that does not exist", "import filesystem\nfilesystem.read_text_file(path={file!r})"),
    ("take 16 GiB of memory", "x = ['a' * 1000000]\nwhile True:\n    x = x + x"),
    ("recurse without end", "def f(n):\n    return f(n + 1)\nf(0)"),
    ("run without end", "while True:\n    pass"),
)
"""The goal of each program, and its source. A program that ends without an error has succeeded."""


def hostile_program() -> str:
    """:returns: its source."""
    place = resources.files("ironcurtain.prove").joinpath("data/hostile")
    return "\n\n".join(place.joinpath(f"{part}.py").read_text() for part in PARTS)


def prove_sandbox(
    subject: str,
    sandbox: Sandbox,
    workspace: str,
    outside: Outside,
    *,
    place: str = "",
    environment: Mapping[str, str] = {},
) -> Report:
    """
    Run the hostile program in a sandbox, to which only a Python is added, and that it may start processes.

    :param subject: what the sandbox belongs to.
    :param workspace: a writable directory in the sandbox; empty: its temporary directory.
    :param place: what it contains, for people.
    :param environment: what its programs get, besides a few variables.
    :raises Unavailable: no sandbox can be made.
    """
    python = os.path.realpath(sys.executable)
    account = sandbox.account
    needed = Installation([sandbox.home or "/", os.environ.get("HOME", "/")], os.defpath, workspace).of(python, (), "/")
    trial = replace(sandbox, read=(*sandbox.read, *needed), cwd=workspace or "/tmp", alone=False)
    kind = programs.kind_of(trial)
    may_be_root = (account is None and os.getuid() == 0) or promises.runs_as_root(kind, account)
    room = Room(trial.limits.memory, trial.limits.temporary)
    without = promises.unlimited(kind, account)
    unlimited = {attempt: f"here it does not limit {what}" for what in without for attempt in LIMITS[what]}
    lacks = [f"{what} (by {promises.NAMES[kind]})" for what in without]
    isolation = _isolation(trial, kind)
    targets = outside.targets(workspace, room, isolation, may_be_root, unlimited)
    words = [python, "-I", "-c", hostile_program(), targets]
    variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": sandbox.home or "/tmp", "LC_ALL": "C.UTF-8"}
    variables = {**environment, **variables}
    bounds = Bounds(SECONDS, OUTPUT_LIMIT, whole=True)
    with ExitStack() as undo:
        handover = Handover(trial.listeners) if trial.listeners else None  # nobody accepts what it connects to
        if handover is not None:
            undo.callback(handover.give_up)
            undo.enter_context(handover.theirs)
        try:
            output = programs.run(trial, words, variables, bounds, handover=handover).output
        except Unfinished as e:
            output = e.output
    attempts, complete = parse(output)
    name = f"{subject}, {place}" if place else subject
    name = f"{name}: {promises.description(kind, account)}"
    return Report(name, attempts, complete, tuple(outside.seen()), unlimited, lacks)


def _isolation(sandbox: Sandbox, kind: Kind) -> Isolation:
    """:returns: what can be seen inside of the isolation that a kind of sandbox makes."""
    uid = os.geteuid() if sandbox.account is None else sandbox.account.uid
    limits = {
        "RLIMIT_DATA": sandbox.limits.memory,
        "RLIMIT_NOFILE": sandbox.limits.files,
        "RLIMIT_FSIZE": sandbox.limits.file_size,
        "RLIMIT_NPROC": sandbox.limits.processes + tasks_of(uid) + 100,  # some may have ended since
        "RLIMIT_CORE": 0,
    }
    match kind:
        case Kind.BUBBLEWRAP:
            own = ("/tmp", "/dev/shm", "/proc", *((sandbox.home,) if sandbox.home else ()))
            return Isolation(NAMESPACES, limits, (*own, *sandbox.write))
        case Kind.CONTAINER:
            return Isolation(NAMESPACES)
        case Kind.LANDLOCK:
            return Isolation(frozenset(), limits)


async def prove_container(subject: str, engine: Engine, session_id: str, outside: Outside) -> Report:
    """
    Run the hostile program in the container of a session.

    :param session_id: a session whose container is running.
    :raises Unavailable: the session has no container, or the container has no Python.
    """
    all_found = await engine.list_containers({SESSION_LABEL: session_id})
    found = [container for container in all_found if not is_sidecar(container.get("Labels") or {})]
    if not found:
        raise Unavailable(f"session {session_id} has no container")
    printed = Kept(OUTPUT_LIMIT)
    memory = int((await engine.inspect(found[0]["Id"]))["HostConfig"]["Memory"])
    words = [
        "python3",
        "-I",
        "-c",
        hostile_program(),
        outside.targets(WORKSPACE, Room(memory, memory), Isolation(NAMESPACES)),
    ]
    status = await execution.run(
        engine, found[0]["Id"], words, stdin=b"", stdout=printed.feed, stderr=printed.feed, environment={}
    )
    if status in (126, 127):
        raise Unavailable("the agent's image has no python3, which runs the hostile program")
    attempts, complete = parse(printed.content)
    return Report(subject, attempts, complete, tuple(outside.seen()))


class Runs(Protocol):
    """Runs a program in the sandbox of a session's agent."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes,
        stdout: execution.Sink,
        stderr: execution.Sink,
        environment: Mapping[str, str],
    ) -> Awaitable[Any]: ...


def unlimited_for_agents(account: Account | None) -> dict[str, str]:
    """
    :param account: the account that programs run as; ``None``: that of this process.
    :returns: the attempts against limits that an agent's sandbox of bubblewrap does not have here, with the reason.
    """
    without = promises.unlimited(Kind.BUBBLEWRAP, account)
    attempts = {attempt: what for what in without for attempt in LIMITS[what]}
    if promises.MEMORY in without:  # that of one process is not limited either, since programs of Bun reserve too much
        attempts[ONE_PROCESS_FILLING] = promises.MEMORY
    return {attempt: f"here it does not limit {what}" for attempt, what in attempts.items()}


async def prove_agent(
    subject: str, run: Runs, python: str, room: Room, outside: Outside, account: Account | None
) -> Report:
    """
    Run the hostile program in the sandbox of bubblewrap that a session's agent has.

    :param run: runs a program there.
    :param python: path of a Python that is there.
    :param account: the account that it runs as; ``None``: that of this process.
    """
    printed, unlimited = Kept(OUTPUT_LIMIT), unlimited_for_agents(account)
    targets = outside.targets(WORKSPACE, room, Isolation(NAMESPACES), False, unlimited)
    line = (python, "-I", "-c", hostile_program(), targets)
    variables = {"LC_ALL": "C.UTF-8"}
    await run(line, stdin=b"", stdout=printed.feed, stderr=printed.feed, environment=variables)
    attempts, complete = parse(printed.content)
    lacks = [f"{what} (by bubblewrap)" for what in promises.unlimited(Kind.BUBBLEWRAP, account)]
    return Report(subject, attempts, complete, tuple(outside.seen()), unlimited, lacks)


async def prove_interpreter(interpreters: MontyInterpreters, file: str, secret: str) -> list[Attempt]:
    """
    Run each program in an interpreter without tools.

    :param file: path of a file outside, which contains the secret.
    :raises Unavailable: the interpreter cannot be started.
    """

    async def no_tool(*_: Any) -> Any:
        raise PermissionError("there is no tool")

    found = []
    interpreter = await interpreters([], no_tool)  # type: ignore[arg-type]
    try:
        for what, program in PROGRAMS:
            done = await interpreter.run(program.format(file=file))
            got_out = done.error is None or secret in f"{done.output}{done.value}{done.error}"
            said = (done.error or "").strip().rpartition("\n")[2]
            found.append(Attempt("programs", what, "succeeded" if got_out else "failed", said[:200]))
    finally:
        await interpreter.close()
    return found
