"""
Run a program with only the files and network it was given, by bubblewrap (``bwrap``).

Only the command line is made here; who starts it does so as with any other program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
"""What programs need in order to run at all; mounted read-only where it exists."""

SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
)
NETWORK_SETTINGS = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl", "/etc/ca-certificates")
"""What name lookup and TLS need besides, given only together with the network."""

PROBE_SECONDS = 10.0


@cache
def available() -> str | None:
    """
    Find out whether bubblewrap works here, by running it once in this process's life.

    :returns: ``None`` if it works, else the reason in words.
    """
    if (program := shutil.which("bwrap")) is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    trial = [program, *Sandbox().command(["/bin/true"])[1:]]
    try:
        done = subprocess.run(trial, capture_output=True, timeout=PROBE_SECONDS, env={}, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"bubblewrap does not start: {e}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
    return f"bubblewrap cannot make a sandbox here: {said}"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """
    What a sandboxed program may reach. All else of the file system, and other processes, do not exist for it.

    :param read: absolute paths it may read.
    :param write: absolute paths it may read and write.
    :param network: whether it has the host's network; without, it has none at all.
    :param cwd: the directory it starts in; must be one of those above.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    cwd: str = "/"

    def command(self, argv: Sequence[str]) -> list[str]:
        """:returns: the command line that runs ``argv`` in this sandbox."""
        line = ["bwrap", "--die-with-parent", "--unshare-all", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
        line += ["--tmpfs", "/tmp"]
        if self.network:
            line.append("--share-net")
        for path in (*SYSTEM, *SETTINGS, *(NETWORK_SETTINGS if self.network else ())):
            line += _system(path)
        for path in self.read:
            line += ["--ro-bind", path, path]
        for path in self.write:
            line += ["--bind", path, path]
        return [*line, "--chdir", self.cwd, "--", *argv]


def _system(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind-try", path, path]
