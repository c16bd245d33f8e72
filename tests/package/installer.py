"""
Install packages into the environment of the Python that runs this, with uv where that can stand in for pip.

``tox.ini`` names it, with uv's place and pip's own words::

    python -I tests/package/installer.py .venv-tox/bin/uv 'pytest>=9.2'

uv takes a fifth of pip's time. It reads nothing of what pip is told by files and variables, as where a mirror is, so
this is translated; with what has no counterpart here, and where uv is absent or fails, pip installs. Neither compiles:
of all that is installed, tests import a tenth.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

COUNTERPARTS = {
    "cert": "SSL_CERT_FILE",
    "constraint": "UV_CONSTRAINT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "no-cache-dir": "UV_NO_CACHE",
    "timeout": "UV_HTTP_TIMEOUT",
    "trusted-host": "UV_INSECURE_HOST",
}
"""uv's variable for a setting of pip."""

NO_MATTER = frozenset(
    (
        "break-system-packages",
        "cache-dir",
        "config-file",
        "disable-pip-version-check",
        "no-color",
        "no-input",
        "no-warn-script-location",
        "progress-bar",
        "quiet",
        "require-virtualenv",
        "retries",
        "root-user-action",
    )
)
"""Settings of pip that change nothing of what it installs."""

OFF = (["0"], ["false"], ["off"], ["no"])
"""What a setting is that was not made; tox says so of ``user``."""

SECTIONS = ("global", "install", ":env:")
"""Those that count for an installation; of two, the later one does."""


def translated(settings: str) -> dict[str, str] | None:
    """
    :param settings: what ``pip config list`` prints.
    :returns: variables that tell uv the same; nothing if one of them has no counterpart.
    """
    found: dict[str, str] = {}
    for section in SECTIONS:
        for line in settings.splitlines():
            name, equals, value = line.partition("=")
            begin, _, key = name.rpartition(".")
            if not equals or begin != section or key in NO_MATTER or (words := ast.literal_eval(value).split()) in OFF:
                continue
            if key not in COUNTERPARTS:
                return None
            found[COUNTERPARTS[key]] = ("," if key == "find-links" else " ").join(words)
    # Where several indexes have a package, pip takes the newest version of all.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **found}


def uv_installs(uv: Path, words: list[str], environ: Mapping[str, str]) -> bool:
    """
    :param words: of ``pip install``.
    :returns: whether uv is there and installed it.
    """
    if not uv.exists():
        return False
    settings = subprocess.run(
        [sys.executable, "-I", "-m", "pip", "config", "list"],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    variables = translated(settings.stdout)
    if variables is None:
        return False
    # What is installed is the environment's own: a test that changes a file must not change it in uv's cache.
    line = [str(uv), "pip", "install", "--python", sys.executable, "--link-mode", "copy", *words]
    return subprocess.run(line, env={**variables, **environ}, check=False).returncode == 0


def main() -> None:
    """Install, and end with pip's status where uv did not."""
    uv, *words = sys.argv[1:]
    if not uv_installs(Path(uv), words, os.environ):
        line = [sys.executable, "-I", "-m", "pip", "install", "--no-compile", *words]
        raise SystemExit(subprocess.run(line, check=False).returncode)


if __name__ == "__main__":
    main()
