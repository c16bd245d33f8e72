"""
The programs that tests need beyond Python, make and git, and what becomes of tests where they are not there.

:func:`program` finds one, or skips the test that asks for it. Run by its path, this module installs all that it can,
runs the command that it is given, and at last says which tests were skipped in it, and why::

    python tests/programs.py [COMMAND ...]
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from unittest import SkipTest

PACKAGES = {
    "/usr/include/openssl/ssl.h": "libssl-dev",
    "/usr/lib/squid/negotiate_kerberos_auth": "squid",
    "/usr/libexec/at-spi-bus-launcher": "at-spi2-core",
    "Xvfb": "xvfb",
    "apt-get": "apt",
    "bash": "bash",
    "busybox": "busybox-static",
    "bwrap": "bubblewrap",
    "cargo": "cargo-web|cargo",
    "cc": "build-essential",
    "curl": "curl",
    "dash": "dash",
    "dbus-daemon": "dbus-daemon",
    "debootstrap": "debootstrap",
    "docker": "docker.io",
    "dockerd": "docker.io",
    "dunst": "dunst",
    "espeak-ng": "espeak-ng",
    "fish": "fish",
    "gh": "gh",
    "git": "git",
    "git-lfs": "git-lfs",
    "go": "golang-go",
    "grim": "grim",
    "gtk4-demo": "gtk-4-examples",
    "ip": "iproute2",
    "kadmin.local": "krb5-admin-server",
    "kdb5_util": "krb5-kdc",
    "kinit": "krb5-user",
    "krb5kdc": "krb5-kdc",
    "less": "less",
    "make": "make",
    "mousepad": "mousepad",
    "node": "nodejs",
    "npm": "npm",
    "nsenter": "util-linux",
    "openbox": "openbox",
    "openssl": "openssl",
    "pactl": "pulseaudio-utils",
    "pulseaudio": "pulseaudio",
    "script": "bsdutils",
    "setpriv": "util-linux",
    "socat": "socat",
    "squid": "squid",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "sway": "sway",
    "systemctl": "systemd",
    "systemd-analyze": "systemd",
    "tesseract": "tesseract-ocr",
    "tmux": "tmux",
    "unshare": "util-linux",
    "vim": "vim",
    "wl-copy": "wl-clipboard",
    "wtype": "wtype",
    "xclip": "xclip",
    "zenity": "zenity",
    "zsh": "zsh",
}
"""
Each program (or file, by its path), and the package of Debian and Ubuntu that has it; of ``A|B``, the first one that
there is.
"""

POLICY = "/usr/sbin/policy-rc.d"
"""The program that packages ask whether they may start a service, if there is one (invoke-rc.d(8))."""

NOT_STARTED = """#!/bin/sh
# No service starts while IronCurtain's tests/programs.py installs programs. If this file is left, remove it.
systemctl --quiet is-active "$1" 2>/dev/null || exit 101
"""

UNITS = "/etc/systemd/system"
"""Where systemd is told what to start with the machine."""

REPORT = "IRONCURTAIN_TEST_SKIPS"
"""The variable that names a directory where each run of pytest leaves what it skipped."""

APT = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30")
"""It waits for another apt, but not long for a network that does not answer."""

Skips = Mapping[str, Iterable[str]]
"""By reason, the tests that were skipped."""


def find(name: str) -> str | None:
    """:returns: the path of a program, if it is installed; one for administrators, or beside Python, counts as well."""
    if os.path.isabs(name):
        return name if os.path.exists(name) else None
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:{Path(sys.executable).parent}")


def program(name: str) -> str:
    """
    Find a program, one of :data:`PACKAGES`.

    :returns: its path.
    :raises SkipTest: it is not installed; the reason says how to get it.
    """
    if (found := find(name)) is None:
        package = PACKAGES[name].rpartition("|")[2]
        raise SkipTest(f"{name} is not installed (Debian and Ubuntu: apt install {package})")
    return found


def missing() -> list[str]:
    """:returns: the packages of programs that are not there."""
    return sorted({package for name, package in PACKAGES.items() if find(name) is None})


def available(package: str) -> str:
    """:returns: of ``A|B`` the first one that there is."""
    first, either, last = package.partition("|")
    if not either or (cache := find("apt-cache")) is None:
        return last or first
    shown = subprocess.run([cache, "show", first], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return first if shown.stdout else last


def install() -> None:
    """
    Install what is missing, if this is root on Debian or Ubuntu. No service of it is started, now or with the machine.

    :raises SystemExit: it failed under CI. Elsewhere the tests that need it are skipped.
    """
    if not (packages := missing()) or os.geteuid() != 0 or find(APT[0]) is None:
        return
    print(f"Installing with apt-get what tests need: {' '.join(packages).replace('|', ' or ')}", flush=True)
    with services_off():
        _install(packages)


def _install(packages: list[str]) -> None:
    for words in (["update"], ["install", "--yes", "--no-install-recommends"]):
        chosen = map(available, packages) if words[0] == "install" else ()
        done = subprocess.run(
            [*APT, *words, *chosen], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )  # fmt: skip
        if done.returncode:
            print(f"apt-get {words[0]} failed:", *done.stdout.splitlines()[-3:], sep="\n  ", flush=True)
            if os.environ.get("CI"):
                raise SystemExit(1)
            return


@contextlib.contextmanager
def services_off() -> Iterator[None]:
    """
    Within it, packages start no services that do not run already, and those that they add do not start with the machine
    later, either: tests start what they need themselves. If the machine has a policy of its own, that decides instead.
    """
    enabled = _enabled()
    policy = Path(POLICY)
    left = policy.exists() and policy.read_text(errors="replace") == NOT_STARTED  # by a run that was killed
    if ours := left or not policy.exists():
        policy.write_text(NOT_STARTED)
        policy.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            policy.unlink(missing_ok=True)
        if (added := sorted(_enabled() - enabled)) and (systemctl := find("systemctl")) is not None:
            subprocess.run([systemctl, "--quiet", "disable", *added], stdin=subprocess.DEVNULL, check=False)


def _enabled() -> set[str]:
    """:returns: the units that something wants which starts with the machine."""
    return {path.name for kind in ("wants", "requires") for path in Path(UNITS).glob(f"*.{kind}/*")}


def summary(skips: Skips) -> list[str]:
    """:returns: lines that say what was skipped and how to run that, too; none if nothing was."""
    counts = {reason: len(set(tests)) for reason, tests in skips.items()}
    if not counts:
        return []
    lines = ["Skipped tests, and why:"]
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  {count:4} {'test' if count == 1 else 'tests'}: {' '.join(reason.split())}")
    if packages := sorted(set(re.findall(r"apt install ([a-z0-9.+-]+)", "\n".join(counts)))):
        lines.append(f"To run those without a program on Debian or Ubuntu: sudo apt install {' '.join(packages)}")
    return lines


def report(skips: Skips) -> None:
    """Leave what was skipped for :func:`run`, if it runs us."""
    if directory := os.environ.get(REPORT):
        text = json.dumps({reason: list(tests) for reason, tests in skips.items()})
        Path(directory, f"{os.getpid()}.json").write_text(text)


def run(command: list[str]) -> int:
    """
    Run a command, pass SIGTERM on to it, and print :func:`summary` of all runs of pytest in it.

    :returns: its exit status.
    """
    with tempfile.TemporaryDirectory(prefix="ic-skips-") as directory:
        ending, process = False, None

        def end(number: int, frame: object) -> None:
            nonlocal ending
            ending = True
            if process is not None:
                process.terminate()

        signal.signal(signal.SIGINT, lambda number, frame: None)  # the terminal sends it to both
        signal.signal(signal.SIGTERM, end)
        process = subprocess.Popen(command, env={**os.environ, REPORT: directory})
        if ending:  # while it started
            process.terminate()
        status = process.wait()
        skips: dict[str, set[str]] = {}
        for path in Path(directory).glob("*.json"):
            for reason, tests in json.loads(path.read_text()).items():
                skips.setdefault(reason, set()).update(tests)
    print(*summary(skips), sep="\n", end="\n" if skips else "")
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    install()
    sys.exit(run(sys.argv[1:]) if sys.argv[1:] else 0)
