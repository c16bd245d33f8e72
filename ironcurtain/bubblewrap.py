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
from pathlib import PurePath

from ironcurtain.accounts import Account

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

_PRESENT = (*SYSTEM, "/proc", "/dev")

PROBE_SECONDS = 10.0


@cache
def available(account: Account | None = None) -> str | None:
    """
    Find out whether bubblewrap works here, by running it once in this process's life.

    :param account: as whom programs are to run, if not as we.
    :returns: ``None`` if it works, else the reason in words.
    """
    if (program := shutil.which("bwrap")) is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    trial = [program, *Sandbox(account=account).command(["/bin/true"])[1:]]
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
    :param account: as whom it runs, if not as we; we are root then. The paths are given to it whatever lies above them.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    cwd: str = "/"
    account: Account | None = None

    def command(self, argv: Sequence[str]) -> list[str]:
        """:returns: the command line that runs ``argv`` in this sandbox."""
        line = ["bwrap", "--die-with-parent", *self._separated(), "--proc", "/proc", "--dev", "/dev"]
        line += ["--tmpfs", "/tmp"] if self.account is None else ["--perms", "1777", "--tmpfs", "/tmp"]
        for path in (*SYSTEM, *SETTINGS, *(NETWORK_SETTINGS if self.network else ())):
            line += _system(path)
        for path in self._above():
            line += ["--perms", "0755", "--dir", path]
        for path in self.read:
            line += ["--ro-bind", path, path]
        for path in self.write:
            line += ["--bind", path, path]
        inside = argv if self.account is None else self.account.command(argv)
        return [*line, "--chdir", self.cwd, "--", *inside]

    def _separated(self) -> list[str]:
        if self.account is None:
            return ["--unshare-all", *(["--share-net"] if self.network else []), "--cap-drop", "ALL"]
        # Without a user namespace, in which there would be no such account. Changing to it ends the capabilities: two
        # of them are for that, one for entering its directory before.
        line = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"]
        line += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_DAC_READ_SEARCH"]
        return line if self.network else [*line, "--unshare-net"]

    def _above(self) -> list[str]:
        """:returns: the directories above those given, which would else be as closed as they are outside."""
        if self.account is None:
            return []
        given = (PurePath(path) for path in (*self.read, *self.write))
        above = {parent for path in given for parent in path.parents} - {PurePath("/"), PurePath("/tmp")}
        return sorted(str(path) for path in above if not any(path.is_relative_to(known) for known in _PRESENT))


def _system(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind-try", path, path]
