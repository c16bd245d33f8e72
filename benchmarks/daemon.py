"""A daemon that runs while something is measured."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def daemon(home: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Run a daemon in a home, from when it accepts connections. Its log is beside the home."""
    line = [str(Path(sys.executable).parent / "twistd"), "-n", "--logfile", "daemon.log", "ironcurtain"]
    with subprocess.Popen(line, env=environ, cwd=home.parent, stderr=subprocess.DEVNULL) as process:
        try:
            while not _accepts(home / "run" / "daemon.sock"):
                assert process.poll() is None, (home.parent / "daemon.log").read_text()
                time.sleep(0.05)
            yield
        finally:
            process.terminate()


def _accepts(path: Path) -> bool:
    """:returns: whether a server listens on a UNIX socket, which exists a moment before."""
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(path)) == 0
