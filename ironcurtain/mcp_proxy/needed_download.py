"""What ``npx`` and ``uvx`` would download at the start of a server, read from its command line."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.process.search_path import host_program

DONE = "installed"
"""Name of the file that marks a complete installation."""

_SILENT = frozenset(("-y", "--yes", "-q", "--quiet"))
PROGRAM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
_PACKAGE = re.compile(
    r"(?:@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[a-z0-9,_-]+\])?(?:(?:@|==)[A-Za-z0-9.^~+-]+)?\Z"
)


class Download(msgspec.Struct, frozen=True):
    """
    :param tool: "npx" or "uvx".
    :param package: the package, with its version if given.
    :param program: the package's command; empty: its only one.
    :param arguments: arguments of the program.
    :param scripts: whether packages may run programs of theirs while they are installed.
    """

    tool: str
    package: str
    program: str
    arguments: tuple[str, ...]
    scripts: bool = False

    @property
    def key(self) -> str:
        """Name of the installation's directory."""
        what = f"{self.package}{' with its scripts' if self.scripts else ''}"
        return f"{self.tool}-{hashlib.sha256(what.encode()).hexdigest()[:16]}"

    def is_installed(self, top: Path) -> bool:
        """:returns: whether it is installed in a :class:`Place`, so that nothing is fetched any more."""
        return (top / self.key / DONE).exists()


def download_of(server: CommandServer) -> Download | None:
    """
    :returns: what a server would download at its start; ``None`` if nothing, or if its arguments are not understood.
    """
    tool, words = os.path.basename(server.command), list(server.args)
    if tool == "uv" and words[:2] == ["tool", "run"]:
        tool, words = "uvx", words[2:]
    option = {"npx": ("-p", "--package"), "uvx": ("--from",)}.get(tool)
    if option is None:
        return None
    package = ""
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name in option:
            package = value if equals else words.pop(0) if words else ""
        elif word not in _SILENT and word != "--":
            return None
    if not words:
        return None
    first, *arguments = words
    program = first if package or tool == "uvx" else ""
    name = re.split("@|==", program)[0]
    found = Download(tool, package or first, name, tuple(arguments), server.install_scripts)
    fits = _PACKAGE.match(found.package) and (not found.program or PROGRAM_NAME.match(found.program))
    return found if fits else None


def installer(download: Download, server: CommandServer, environ: Mapping[str, str]) -> str:
    """
    :param environ: the environment of this process.
    :returns: path of the program that installs what a server needs.
    :raises Unavailable: it is missing.
    """
    name = "npm" if download.tool == "npx" else "uv"
    if (found := host_program(name, environ.get("PATH"))) is None:
        raise Unavailable(f"MCP server {server.name}: {server.command} needs {name}, which is not in the PATH")
    return found
