"""
For each line of input, start a child that appends to the audit log which the command line names, for ever.

The child prints its pid and each record's number once it is written; ``gone`` is printed once the child was killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from twisted.internet.task import Clock

from ironcurtain.audit.log import AuditLog
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import at_once


def append_for_ever(path: Path) -> None:
    """Never returns."""
    log = AuditLog(path, "session-1", Redactor(), Clock(), lambda: 1.5e9, at_once)
    while True:
        number = log.append("call", arguments=[0] * 200)
        os.write(1, b"%d %d\n" % (os.getpid(), number))


def main() -> None:
    """Serve until the input ends."""
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            append_for_ever(Path(sys.argv[1]))
        os.waitpid(child, 0)
        os.write(1, b"gone\n")


if __name__ == "__main__":
    main()
