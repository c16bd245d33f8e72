"""
Find packages that are installed as links: they lie elsewhere, and programs load them from there.

For Python these are the lines and the import hooks of ".pth" files (``site``, "editable" installations and workspaces
of uv); for Node they are symbolic links in ``node_modules`` (``npm link``, and workspaces of npm, pnpm and yarn).
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from contextlib import suppress

from ironcurtain.text.decoding import decode_anyhow

FILE_LIMIT = 256 * 1024
"""Maximum size in bytes of a file that is read for the paths in it."""

LINKS_LIMIT = 5000
"""Maximum number of packages in one ``node_modules`` that are looked at (large projects have about 2000)."""

_HOOK = re.compile(r"import[ \t]+([A-Za-z_][A-Za-z0-9_]*)")


def python_paths(site: str) -> Iterator[str]:
    """
    :param site: a directory with the packages of a Python.
    :returns: absolute paths of existing files and directories with modules that lie elsewhere.
    """
    for name in _names(site):
        for line in _text(f"{site}/{name}").splitlines() if name.endswith(".pth") else ():
            if (hook := _HOOK.match(line)) is not None:
                yield from _of_hook(f"{site}/{hook[1]}.py")
            elif line.strip() and not line.startswith("#") and os.path.isdir(path := os.path.join(site, line.strip())):
                yield os.path.normpath(path)


def node_links(modules: str) -> Iterator[str]:
    """:returns: the symbolic links to packages in a ``node_modules``, except those to its own."""
    names = _names(modules)
    scoped = (f"{name}/{below}" for name in names if name.startswith("@") for below in _names(f"{modules}/{name}"))
    real = os.path.realpath(modules)
    for name in (*(name for name in names if name != ".bin"), *scoped):
        path = f"{modules}/{name}"
        if os.path.islink(path) and not os.path.realpath(path).startswith(f"{real}/"):
            yield path


def _of_hook(path: str) -> Iterator[str]:
    """The paths in an import hook, as setuptools and others generate it."""
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse(_text(path))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and text.startswith("/") and "\0" not in text and os.path.exists(text):
                yield os.path.normpath(text)


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))[:LINKS_LIMIT]
    except OSError:
        return []


def _text(path: str) -> str:
    return decode_anyhow(head_of(path, FILE_LIMIT))


def head_of(path: str, most: int) -> bytes:
    """
    :param most: maximum number of bytes.
    :returns: the beginning of a file; empty if it cannot be read.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # it may be a pipe
            return file.read(most) or b""
    except OSError:
        return b""
