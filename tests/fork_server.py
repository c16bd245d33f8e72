"""
A program that runs commands of ours for tests, each in a process forked from it: in that, most modules are imported.

A command started as usual imports them first, and that takes longer than what most commands do. The program's standard
input is a socket on which each packet asks for a command: its words, environment and directory, with a socket for the
answers and its three streams. The answers are its pid and, at the end, its status. The program ends once nobody can ask
any more.
"""

from __future__ import annotations

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
from selectors import EVENT_READ, BaseSelector, DefaultSelector

COMMAND = "ironcurtain.cli"

MODULES = (
    "ironcurtain.assembly",
    "ironcurtain.builtin_agent.kind",
    "ironcurtain.cli.escalations",
    "ironcurtain.cli.looping",
    "ironcurtain.cli.play",
    "ironcurtain.cli.report",
    "ironcurtain.cli.sessions",
    "ironcurtain.control.blocking",
    "ironcurtain.loop.kind",
    "ironcurtain.mcp_proxy.gate",
    "ironcurtain.mcp_proxy.proxy",
    "ironcurtain.session.project",
    "ironcurtain.session.verification",
    "ironcurtain.session.witnesses",
    "ironcurtain.view.session_report",
    "twisted.internet.asyncioreactor",
)
"""What is imported, with all that these import: what the usual commands need."""

LONGEST_PACKET = 200_000


def main() -> None:
    """Serve, and in the process of each command run that."""
    with socket.socket(fileno=os.dup(0)) as asked, DefaultSelector() as selector:
        if not asked.recv(1, socket.MSG_PEEK):
            return  # nobody has run any
        for name in MODULES:
            importlib.import_module(name)
        # Each command installs the reactor, and a forked process has one thread.
        assert "twisted.internet.reactor" not in sys.modules
        assert len(os.listdir("/proc/self/task")) == 1
        gc.freeze()
        words = serve(asked, selector)
    if words is not None:
        sys.argv[1:] = words
        runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)


def serve(asked: socket.socket, selector: BaseSelector) -> list[str] | None:
    """
    Fork for each command, and tell how it ends.

    :returns: the words of a command, in its process; nothing at the end.
    """
    running: dict[int, tuple[int, socket.socket]] = {}  # by what is readable once a process has ended
    selector.register(asked, EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd in running:
                selector.unregister(key.fd)
                os.close(key.fd)
                pid, answer = running.pop(key.fd)
                with answer, suppress(BrokenPipeError):  # of a test that waited no longer
                    answer.send(marshal.dumps(os.waitpid(pid, 0)[1]))
                continue
            packet, descriptors, _, _ = socket.recv_fds(asked, LONGEST_PACKET, 4, socket.MSG_CMSG_CLOEXEC)
            if not packet:
                return None
            answer, streams = socket.socket(fileno=descriptors[0]), descriptors[1:]
            if not (pid := os.fork()):
                for each in (answer, *(other for _, other in running.values())):
                    each.close()
                words, environ, directory = marshal.loads(packet)
                become(environ, directory, streams, list(running))
                return list(words)
            for stream in streams:
                os.close(stream)
            answer.send(marshal.dumps(pid))
            ended = os.pidfd_open(pid)
            running[ended] = pid, answer
            selector.register(ended, EVENT_READ)


def become(environ: dict[bytes, bytes], directory: str, streams: Sequence[int], others: Sequence[int]) -> None:
    """
    Have the environment, directory and streams of a command.

    :param others: descriptors that a command does not have.
    """
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for each in (*streams, *others):
        os.close(each)
    os.environb.clear()
    os.environb.update(environ)
    time.tzset()
    os.chdir(directory)


if __name__ == "__main__":
    main()
