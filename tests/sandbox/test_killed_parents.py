"""Sandboxes with listeners whose parent is killed while they start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from functools import partial
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox import hold
from ironcurtain.sandbox.spec import Kind, Sandbox
from tests.audit.doubles import scratch
from tests.machine import demand_sandbox
from tests.product import wait_until

PATIENCE = 60.0
"""Seconds until a program whose parent is gone has to be gone, on a machine that has much else to do."""

PARENT = """
import os, sys
from ironcurtain.process.bounded import Bounds
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.handover import Handover
from ironcurtain.sandbox.spec import Listener, Sandbox
listeners = (Listener("127.0.0.1", 18080),)
words = [os.path.realpath(sys.executable), "-I", "-S", "-c", "import time; time.sleep(600)", sys.argv[1]]
print("begun", flush=True)
sandbox, environ = Sandbox(listeners=listeners), {"PATH": os.environ["PATH"]}
programs.run(sandbox, words, environ, Bounds(60), handover=Handover(listeners))
"""


def is_gone(mark: str) -> bool:
    """:returns: whether no command line contains a mark."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                line = (process / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if mark in line:
                return False
    return True


class KilledParentTests(SynchronousTestCase):
    def setUp(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))

    def test_nothing_stays_whenever_the_parent_is_killed(self) -> None:
        for delay in (0.0, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.3):
            mark = f"mark-{uuid.uuid4()}"
            parent = subprocess.Popen(
                [sys.executable, "-c", PARENT, mark], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            with parent:
                assert parent.stdout is not None
                self.assertEqual(parent.stdout.readline(), b"begun\n")
                time.sleep(delay)
                os.kill(parent.pid, signal.SIGKILL)
            wait_until(partial(is_gone, mark), PATIENCE)

    def test_process_inside_goes_with_a_bubblewrap_that_never_named_it(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(ours.close)
        directory = Path(scratch(self))
        (directory / "bwrap").write_text('#!/bin/bash\neval "exec $2>&-"\nsleep 600.25 </dev/null >/dev/null 2>&1 &\n')
        (directory / "bwrap").chmod(0o755)
        with theirs:
            line = [sys.executable, "-I", "-S", hold.__file__, str(theirs.fileno()), "127.0.0.1/18080/tcp"]
            subprocess.run([*line, str(directory / "bwrap")], pass_fds=(theirs.fileno(),), timeout=60, check=True)
        self.assertEqual(ours.recv(100), b"")  # the helper has ended
        wait_until(partial(is_gone, "sleep\x00600.25"), PATIENCE)
