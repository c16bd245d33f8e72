"""Who makes the commits of a session: name and address from the person's own git settings."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

from ironcurtain.process.accounts import Account

GIT_SECONDS = 5.0
"""How long git may take to read its settings (it takes 2 ms)."""


def git_identity(environ: Mapping[str, str], account: Account | None) -> bytes:
    """
    :param account: whose settings are read, if not ours; we are root then.
    :returns: content for a ``.gitconfig``; empty if the person has told git no name.
    """
    if (git := shutil.which("git", path=environ.get("PATH", os.defpath))) is None:
        return b""
    home = environ.get("HOME", "/") if account is None else account.home
    command = [git, "config", "--global", "--null", "--get-regexp", r"^user\.(name|email)$"]
    try:
        done = subprocess.run(
            command if account is None else account.command(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            cwd="/",
            env={"HOME": home, "PATH": environ.get("PATH", os.defpath)},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    found = dict(entry.split(b"\n", 1) for entry in done.stdout.split(b"\0") if b"\n" in entry)
    lines = [b"\t%s = %s\n" % (key.removeprefix(b"user."), _quoted(value)) for key, value in found.items()]
    return b"[user]\n" + b"".join(lines) if lines else b""


def _quoted(value: bytes) -> bytes:
    """:returns: a value as git's settings have it (git-config(1), "Values")."""
    escaped = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t")
    return b'"' + escaped + b'"'
