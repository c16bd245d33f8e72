"""
A program that runs commands of ours for tests, each in a process forked from it: in that, most modules are imported.

A command started as usual imports them first, and that takes longer than what most commands do. The program's standard
input is a socket on which each packet asks for a command: its program, words, environment, directory, and whether it
begins a session of its own (setsid(2)), with a socket for the answer and its three streams. The answer is its pid. Its
parent has ended then, so that it is a child of whoever adopts such processes (``PR_SET_CHILD_SUBREAPER``). The program
ends once nobody can ask any more.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import marshal
import os
import runpy
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

COMMAND = "ironcurtain.cli"

MODULES = (
    "docker",
    "ironcurtain.assembly",
    "ironcurtain.builtin_agent.kind",
    "ironcurtain.cli.doctor",
    "ironcurtain.cli.escalations",
    "ironcurtain.cli.looping",
    "ironcurtain.cli.mcp",
    "ironcurtain.cli.play",
    "ironcurtain.cli.policy",
    "ironcurtain.cli.report",
    "ironcurtain.cli.sessions",
    "ironcurtain.cli.shelling",
    "ironcurtain.container_agent.kind",
    "ironcurtain.control.blocking",
    "ironcurtain.control.client",
    "ironcurtain.control.server",
    "ironcurtain.fleet.serving",
    "ironcurtain.loop.kind",
    "ironcurtain.mcp_proxy.gate",
    "ironcurtain.mcp_proxy.proxy",
    "ironcurtain.session.project",
    "ironcurtain.session.verification",
    "ironcurtain.session.witnesses",
    "ironcurtain.view.session_report",
    "ironcurtain.watchers.watching",
    "twisted.internet.asyncioreactor",
    "twisted.scripts.twistd",
)
"""What is imported, with all that these import: what the usual commands and daemons need."""

LONGEST_PACKET = 200_000


def main() -> None:
    """Serve, and in the process of each command run that."""
    with socket.socket(fileno=os.dup(0)) as asked:
        if not asked.recv(1, socket.MSG_PEEK):
            return  # nobody has run any
        atexit.register(_leave)  # whatever is registered later comes before
        for name in MODULES:
            importlib.import_module(name)
        # Each command installs the reactor, and a forked process has one thread.
        assert "twisted.internet.reactor" not in sys.modules
        assert len(os.listdir("/proc/self/task")) == 1
        gc.freeze()
        words = serve(asked)
    if words is not None:
        run(words)


def serve(asked: socket.socket) -> list[str] | None:
    """
    Fork for each command.

    :returns: the program and words of a command, in its process; nothing at the end.
    """
    while True:
        packet, descriptors, _, _ = socket.recv_fds(asked, LONGEST_PACKET, 4, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            return None
        if not (between := os.fork()):
            if pid := os.fork():
                os.write(descriptors[0], marshal.dumps(pid))
                os._exit(0)
            words, environ, directory, alone = marshal.loads(packet)
            os.close(descriptors[0])
            if alone:
                os.setsid()
            become(environ, directory, descriptors[1:])
            return list(words)
        os.waitpid(between, 0)
        for each in descriptors:
            os.close(each)


def become(environ: dict[bytes, bytes], directory: str, streams: Sequence[int]) -> None:
    """Have the environment, directory and streams of a command."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for each in streams:
        os.close(each)
    os.environb.clear()
    os.environb.update(environ)
    time.tzset()
    os.chdir(directory)


def run(words: Sequence[str]) -> None:
    """Be a program, or what ``python -m`` runs."""
    program, *sys.argv[1:] = words
    try:
        if program == "-m":
            sys.path.insert(0, os.getcwd())
            runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
        elif Path(program).name == "ironcurtain":
            runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = program
            sys.path.insert(0, str(Path(program).parent))
            runpy.run_path(program, run_name="__main__")
    except SystemExit as e:
        if isinstance(e.code, int | None):
            _statuses.append(e.code or 0)
        raise


_statuses: list[int] = []
"""Of the command, once it ends with one."""


def _leave() -> None:
    """
    End a command after its own work at exit. Python would destroy all modules first, of which a forked process then has
    to have pages of its own: that takes three times as long as all else that a short command does.
    """
    if _statuses:
        with suppress(OSError):  # about which Python says something
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_statuses[0])


if __name__ == "__main__":
    main()
