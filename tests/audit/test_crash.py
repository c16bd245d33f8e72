from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from typing import IO

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain
from ironcurtain.audit.log import AuditLog
from ironcurtain.secrets.redaction import Redactor
from tests.audit import appender
from tests.audit.doubles import at_once, scratch

KILLS = 30
MOST_RECORDS = 40


class CrashTests(SynchronousTestCase):
    def test_a_writer_may_be_killed_at_any_moment(self) -> None:
        """Thirty writers continue one file, each killed somewhere; nothing that one of them wrote is lost."""
        path = scratch(self) / "audit.jsonl"
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, str(appender.__file__), str(path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as nursery:
            assert nursery.stdin is not None and nursery.stdout is not None
            for moment in random.Random(26).choices(range(MOST_RECORDS), k=KILLS):
                nursery.stdin.write(b"\n")
                nursery.stdin.flush()
                last = self.kill_after(moment, nursery.stdout)
                report = chain.verify(path.read_bytes().splitlines(keepends=True))
                self.assertEqual([problem for problem in report.problems if "is incomplete" not in problem.what], [])
                self.assertGreaterEqual(report.records, last)
            nursery.stdin.close()
        AuditLog(path, "session-1", Redactor(), Clock(), lambda: 1.5e9, at_once)
        self.assertEqual(chain.verify(path.read_bytes().splitlines(keepends=True)).problems, [])

    def kill_after(self, moment: int, output: IO[bytes]) -> int:
        """:returns: the last number that the writer told."""
        pid, last = map(int, output.readline().split())
        for _ in range(moment):
            pid, last = map(int, output.readline().split())
        os.kill(pid, signal.SIGKILL)
        while (line := output.readline()) != b"gone\n":
            last = int(line.split()[1])
        return last
