"""What tests need of the machine besides programs, and of which it may have none: as root, and in containers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import SkipTest

from ironcurtain.sandbox import programs
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.spec import Sandbox
from tests.programs import program

CAP_SYS_PTRACE = 19
"""The number of the right to look into any process (capabilities(7))."""

UID = os.geteuid() or 1_000_000 + os.getpid()
"""
Whose the sandboxes of agents are: ours, to whom the files belong; for root an account that nobody has, lest luck help.
It is another one in each process that runs tests, since the kernel counts the processes of an account, wherever they
are, and a limit would be reached by those of others.
"""

PLAIN = Sandbox()
"""Has nothing that any kind could not give."""

LINKED = Sandbox(write=("/tmp",), read=("/tmp/part",))
"""Has what those for linked repositories have: something that is only read, in what is written."""


def demand_sandbox(wanted: Sandbox = PLAIN) -> None:
    """:raises SkipTest: nothing can make such a sandbox here."""
    found = [problem for _, problem in programs.problems(wanted)]
    if None not in found:
        raise SkipTest("; ".join(filter(None, found)))


def demand_namespaces() -> list[str]:
    """
    Find out whether somebody like us may mount something in a place of our own.

    :returns: the command line in front of a command that does.
    :raises SkipTest: nobody may, as in most containers.
    """
    rights = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    line = [program("unshare"), "--mount", *rights]
    if subprocess.run([*line, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        raise SkipTest("no namespace can be made on this machine")
    return line


def demand_sight() -> None:
    """:raises SkipTest: we may not look into processes that hide their memory, as the product's do."""
    rights = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if rights is None or not int(rights[1], 16) >> CAP_SYS_PTRACE & 1:
        raise SkipTest("only root, outside containers, may look into the processes of a daemon")


def process_descriptor(pid: int) -> int:
    """:returns: a descriptor that is readable once a process has ended, though it is not ours (pidfd_open(2))."""
    if sys.platform != "linux":
        raise SkipTest("only Linux has descriptors of processes")
    return os.pidfd_open(pid)


def wait_until_ended(pid: int) -> None:
    """Wait until a child has ended, and leave its end to be waited for."""
    if sys.platform == "darwin":
        raise SkipTest("Python's waitid is missing here")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def python_inside() -> tuple[str, tuple[str, ...]]:
    """:returns: this Python, and the paths that a sandbox must have for it to run there; it need not be below /usr."""
    python = os.path.realpath(sys.executable)
    return python, Installation(["/nonexistent"], os.defpath, "/nonexistent").of(python, (), "/usr")
