"""A real systemd as the first process of a PID namespace, with this machine's files, to run units in."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from twisted.trial.unittest import SkipTest

from tests.programs import program

SYSTEMD = "/lib/systemd/systemd"
PATIENCE = 120.0
"""Seconds for systemd to be up, and for whatever is waited for."""

UNITS = "/run/units"
"""Where it finds units, and nowhere else: those of this machine would clean its directories, as at a boot."""

BOOT = r"""
set -e
systemd=$1 units=$2
mount --bind /etc /etc
mount -o remount,bind,ro /etc
mount -t tmpfs none /run
mkdir "$units"
for name in basic multi-user network shutdown sysinit; do
  printf '[Unit]\nDefaultDependencies=no\n' >"$units/$name.target"
done
mount -t cgroup2 none /sys/fs/cgroup
own=/sys/fs/cgroup/ironcurtain-test-$$
mkdir "$own"
echo $$ >"$own/cgroup.procs"
unshare --mount --pid --fork --kill-child --cgroup --uts --ipc sh -c '
  mount -t proc none /proc
  mount --bind /proc/sys /proc/sys
  mount -o remount,bind,ro /proc/sys
  umount /sys/fs/cgroup
  mount -t cgroup2 none /sys/fs/cgroup
  exec env container=docker SYSTEMD_UNIT_PATH="$2" "$1" --system --unit=basic.target --log-target=null
' sh "$systemd" "$units" || true
echo $$ >/sys/fs/cgroup/cgroup.procs
find "$own" -depth -type d -delete
"""
"""It has a ``/run`` of its own, and can change neither ``/etc`` nor settings of the kernel."""


TRIAL = "cgroups=/sys/fs/cgroup; mount -t cgroup2 none $cgroups && mkdir $cgroups/trial-$$ && rmdir $cgroups/trial-$$"
"""What a container without privileges refuses."""


class SystemdMachine:
    """
    Boot it.

    :param environ: of systemd itself, so that what is left running can be found.
    """

    def __init__(self, environ: dict[str, str]) -> None:
        line = ["unshare", "--mount", "sh", "-c", BOOT, "sh", SYSTEMD, UNITS]
        self._outer = subprocess.Popen(
            line, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            process_group=0,
        )  # fmt: skip
        self._end = time.monotonic() + PATIENCE
        self._pid = self._first_process()
        while self.run("systemctl", "is-system-running").stdout.strip() not in ("running", "degraded"):
            self._wait("systemd is not up")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it, to its end."""
        environ = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        line = ["nsenter", "--target", str(self._pid), "--all", "--root", *words]
        return subprocess.run(line, env=environ, text=True, capture_output=True, timeout=PATIENCE, check=False)

    def install(self, name: str, text: str) -> None:
        """Put a file where units are."""
        path = Path(f"/proc/{self._pid}/root{UNITS}", name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def show(self, unit: str, name: str) -> str:
        """:returns: a property of a unit."""
        return self.run("systemctl", "show", "--value", "--property", name, unit).stdout.strip()

    def until(self, unit: str, **wanted: str) -> None:
        """Wait until a unit has these properties."""
        self._end = time.monotonic() + PATIENCE
        while (found := {name: self.show(unit, name) for name in wanted}) != wanted:
            self._wait(f"{unit} has {found}, not {wanted}")

    def close(self) -> None:
        """End it, and all that runs in it."""
        os.kill(self._pid, signal.SIGKILL)
        said, _ = self._outer.communicate(timeout=PATIENCE)
        assert self._outer.returncode == 0, said

    def _first_process(self) -> int:
        """:returns: the pid that systemd has outside: it is the only child of the outer shell's only child."""
        while True:
            pids = [self._outer.pid]
            while pids and _name(pids[0]) != "systemd":
                pids = _children(pids[0])
            if pids:
                return pids[0]
            self._wait("systemd is not started")

    def _wait(self, what: str) -> None:
        if self._outer.poll() is not None:
            raise AssertionError(f"{what}: {self._outer.communicate()[0]}")
        if time.monotonic() > self._end:
            os.killpg(self._outer.pid, signal.SIGKILL)  # what it started ends with it
            raise AssertionError(what)
        time.sleep(0.02)  # of its state nothing can be awaited


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it is gone
        return ""


def _children(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def demand() -> None:
    """:raises SkipTest: it cannot be had here."""
    unshare = program("unshare")
    for name in ("systemctl", "nsenter"):
        program(name)
    if os.geteuid() != 0:
        raise SkipTest("only root can boot a systemd")
    line = [unshare, "--mount", "--pid", "--fork", "--cgroup", "sh", "-c", TRIAL]
    if subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        raise SkipTest("root may not make the namespaces and control groups that a systemd needs")
