"""
Install programs that ``npx`` and ``uvx`` would download at each start, since sandboxes have no network.

A program is installed once, into a directory of the home. The installation runs in a sandbox that reaches the
registries and has that directory, but without the workspace and without credentials, and runs no scripts of packages
unless a person asks for them. Afterwards the program runs without network.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from twisted.internet.interfaces import IReactorFromThreads

from ironcurtain.errors import Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.mcp_proxy.needed_download import DONE, PROGRAM_NAME, Download, installer
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.network.access import Access, listeners
from ironcurtain.network.gateway import WayOut
from ironcurtain.network.listed import ListedJudge
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.handover import Handover
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.services.background import in_background

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.download_hosts import Registries

DOWNLOAD_SECONDS = 300.0
"""Time limit of an installation in seconds (a server with many packages takes some ten seconds)."""

SAID = 600
"""Most characters of an installer's last words that explain a failure."""

_CERTIFICATES = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")


async def install(
    download: Download,
    server: CommandServer,
    place: Place,
    reactor: IReactorFromThreads,
    way_out: WayOut,
    tell: Callable[[str], None],
) -> tuple[CommandServer, tuple[str, ...]]:
    """
    Install a program, unless it is installed.

    :param way_out: to the registries.
    :param tell: called with a sentence about each connection that is not made.
    :returns: as :func:`installed` does.
    :raises Unavailable: it could not be installed.
    """
    if download.is_installed(place.top):
        return await in_background(reactor, partial(installed, download, server, place))
    registries = await in_background(reactor, partial(_registries, download, server, place.environ))
    judge = ListedJudge(registries.access, "the configuration of registries")
    gateway = way_out.without_proxy(registries.access, judge, tell)
    handover = gateway.handover()
    try:
        return await in_background(reactor, partial(installed, download, server, place, registries, handover))
    finally:
        handover.theirs.close()
        await gateway.stop()


def _registries(download: Download, server: CommandServer, environ: Mapping[str, str]) -> Registries:
    # Slow to import, and most sessions download nothing.
    from ironcurtain.mcp_proxy.download_hosts import npm_registries, uv_registries

    if download.tool == "npx":
        return npm_registries(installer(download, server, environ), download.package, environ)
    return uv_registries(environ)


class Place(msgspec.Struct, frozen=True):
    """
    Where and how programs are installed.

    :param top: an existing directory of the home, for all such programs.
    :param environ: the environment of this process.
    :param account: the account that servers run as, if not that of this process, which is root then.
    :param kind: what implements sandboxes; ``None``: the strongest kind that works.
    """

    top: Path
    environ: Mapping[str, str]
    account: Account | None = None
    kind: Kind | None = None


def installed(
    download: Download,
    server: CommandServer,
    place: Place,
    registries: Registries | None = None,
    handover: Handover | None = None,
) -> tuple[CommandServer, tuple[str, ...]]:
    """
    Install a program, unless it is installed. This blocks.

    :param registries: what the installation may connect to; ``None``: nothing.
    :param handover: takes the sockets for this.
    :returns: the server with the program's path instead of ``npx`` or ``uvx``, and the paths that its sandbox needs.
    :raises Unavailable: it could not be installed.
    """
    environ, account, top = place.environ, place.account, place.top
    path, tool = environ.get("PATH", os.defpath), installer(download, server, environ)
    directory = top / download.key
    needed = Installation([environ.get("HOME", "/")], path, str(directory)).of(tool, (), "/usr")
    with locked(top / f".{download.key}.lock"):  # another session may be installing the same program
        if not download.is_installed(top):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(mode=0o700)
            if account is not None:
                os.chown(directory, account.uid, account.gid)
            work = _Installation(download, server.name, tool, directory, needed, place, registries, handover)
            work.run()
            write_atomically(directory / DONE, download.package.encode())
    return replace(server, command=str(_program(download, directory)), args=download.arguments), (
        *needed,
        str(directory),
    )


class _Installation(msgspec.Struct, frozen=True):
    download: Download
    name: str
    tool: str
    directory: Path
    needed: Sequence[str]
    place: Place
    registries: Registries | None
    handover: Handover | None

    def run(self) -> None:
        package = self.download.package
        try:
            done = programs.run(
                self._sandbox(), self._line(), self._environment(), Bounds(DOWNLOAD_SECONDS), handover=self.handover
            )
        except Unavailable as e:
            raise Unavailable(f"MCP server {self.name}: {package} is downloaded in a sandbox, and {e}") from None
        except Unfinished:
            raise Unavailable(
                f"MCP server {self.name}: {package} was not installed within {DOWNLOAD_SECONDS:.0f} s"
            ) from None
        if done.status:
            lines = (done.output + done.errors).decode(errors="replace")[-SAID:].splitlines()
            said = "; ".join(filter(None, map(str.strip, lines)))  # who shows it escapes it
            raise Unavailable(f"MCP server {self.name}: {package} could not be installed: {said}")

    def _line(self) -> list[str]:
        package, scripts = self.download.package, self.download.scripts
        if self.download.tool != "npx":
            return [self.tool, "tool", "install", *([] if scripts else ["--no-build"]), package.replace("@", "==")]
        options = ["--prefix", str(self.directory), "--no-audit", "--no-fund", "--no-save"]
        named = self.registries.options if self.registries is not None else ()
        return [self.tool, "install", *options, *([] if scripts else ["--ignore-scripts"]), *named, package]

    def _environment(self) -> dict[str, str]:
        place, environ = str(self.directory), self.place.environ
        below = {"UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin", "UV_CACHE_DIR": "cache", "npm_config_cache": "cache"}
        return {
            "PATH": environ.get("PATH", os.defpath),
            "HOME": "/tmp",
            **{variable: f"{place}/{name}" for variable, name in below.items()},
            **{variable: environ[variable] for variable in _CERTIFICATES if variable in environ},
            **((self.registries.variables or {}) if self.registries is not None else {}),
        }

    def _sandbox(self) -> Sandbox:
        access, place = Access() if self.registries is None else self.registries.access, str(self.directory)
        files = () if self.registries is None else self.registries.files
        return Sandbox(
            (*self.needed, *files),
            (place,),
            listeners=listeners(access, proxy=False),
            cwd=place,
            account=self.place.account,
            files=tuple(access.files()) if access else (),
            kind=self.place.kind,
        )


def _program(download: Download, directory: Path) -> Path:
    if download.tool == "uvx":
        return directory / "bin" / download.program
    return directory / "node_modules" / ".bin" / (download.program or _only_command(download.package, directory))


def _only_command(package: str, directory: Path) -> str:
    """:returns: the only command of an npm package. Only its name is taken from the package."""
    plain = package[: package.index("@", 1)] if "@" in package[1:] else package
    last = plain.rpartition("/")[2]
    try:
        file = os.open(directory / "node_modules" / plain / "package.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(file, "rb") as opened:
            commands = json.loads(opened.read(1 << 20)).get("bin")
    except (OSError, ValueError, RecursionError, AttributeError) as e:
        raise Unavailable(f"{package} is not a package with a command: {e}") from None
    names = [last] if isinstance(commands, str) else list(commands) if isinstance(commands, dict) else []
    chosen = last if last in names or not names else str(names[0])
    if not PROGRAM_NAME.match(chosen):
        raise Unavailable(f"{package} has no executable command")
    return chosen
