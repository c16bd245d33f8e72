"""Where the pinned definitions of a home's tools are kept: a file for each server, called by the server's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ironcurtain.errors import ConfigurationError, NotFound, StaleDecision, Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.home.layout import private_directory, read_configuration
from ironcurtain.home.structured import check_version, convert, parse_json
from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.mcp_proxy.pins import Pin, accepted, digest_of_waiting, seen

VERSION = 1
"""The newest version of the files' format that we read."""

DEFINITION_LIMIT = 256 * 1024
"""Most bytes of a definition that is pinned (the longest known to us has 30 KB)."""

TOOLS_LIMIT = 5000
"""Most tools of a server that are pinned."""

FILE_LIMIT = 16 * 1024 * 1024
"""Most bytes of a file."""

_encoder = msgspec.json.Encoder(order="deterministic")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    tools: dict[str, Pin]


class Seen(NamedTuple):
    """
    What counts of what a server said.

    :param pins: of its tools, but for those that are beyond a limit.
    :param new: how many definitions were pinned just now.
    """

    pins: dict[str, Pin]
    new: int


@dataclass(frozen=True, slots=True)
class PinFile:
    """
    The pins of one server.

    :param now: gives seconds since the epoch.
    """

    path: Path
    now: Callable[[], float]

    def read(self) -> dict[str, Pin]:
        """
        :returns: the pins by the tools' names; none if nothing was pinned yet.
        :raises ConfigurationError: the file is damaged. Nothing may be used of the server then.
        """
        try:
            return self._read()
        except ConfigurationError as e:
            mend = "a person must mend it, or remove it, and then what the server says next is pinned"
            raise ConfigurationError(str(self.path), f"{e.detail}: {mend}", field=e.field) from None

    def mark(self) -> tuple[int, int]:
        """:returns: what changes with the file's content."""
        try:
            status = self.path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return 0, 0
        return status.st_ino, status.st_mtime_ns

    def see(self, definitions: Iterable[Mapping[str, Any]]) -> Seen:
        """
        A server says these definitions: pin those of tools that were never seen, note those that differ.

        :raises ConfigurationError: the file is damaged.
        :raises Unavailable: it cannot be read or written.
        """
        said = {str(d["name"]): dict(d) for d in definitions if len(_encoder.encode(d)) <= DEFINITION_LIMIT}
        try:
            known = before = self.read()
            if self._with(known, said) != known:
                private_directory(self.path.parent)
                with self._locked():
                    before = self.read()
                    known = self._with(before, said)
                    self._write(known)
        except OSError as e:
            raise Unavailable(f"{self.path}, where definitions of tools are pinned: {e.strerror}") from None
        new = [name for name, pin in known.items() if name not in before and pin.definition is not None]
        return Seen({name: known[name] for name in said if name in known}, len(new))

    def accept(self, tools: Collection[str], digest: str, by: str) -> dict[str, Pin]:
        """
        A person accepts definitions that wait.

        :param tools: of which tools; empty for all of this server.
        :param digest: of what was shown to the person.
        :param by: who the person is.
        :returns: what counts now, of those tools.
        :raises NotFound: nothing waits, or not of one of these tools.
        :raises StaleDecision: what waits now is not what was shown.
        :raises ConfigurationError: the file is damaged.
        """
        if not self.path.exists():
            raise NotFound(f"no tool of {self.path.stem} waits to be accepted")
        with self._locked():
            known = self.read()
            chosen = waiting(self.path.stem, known, tools)
            if digest_of_waiting(chosen) != digest:
                raise StaleDecision("what waits now is not what was shown: look again")
            new = {name: accepted(pin, by, self.now()) for name, pin in chosen.items()}
            self._write({**known, **new})
        return new

    def _read(self) -> dict[str, Pin]:
        source = str(self.path)
        if self.path.is_symlink() or (self.path.exists() and self.path.stat().st_size > FILE_LIMIT):
            raise ConfigurationError(source, f"is a link, or over {FILE_LIMIT} bytes")
        text = read_configuration(self.path)
        if text is None:
            return {}
        parsed = parse_json(source, text.encode())
        check_version(source, parsed, VERSION)
        file: _File = convert(source, parsed, _File)
        return file.tools

    def _with(self, known: Mapping[str, Pin], said: Mapping[str, dict[str, Any]]) -> dict[str, Pin]:
        new, now = dict(known), self.now()
        for name, definition in said.items():
            pin = seen(known.get(name), definition, now)
            if pin != known.get(name) and (name in new or len(new) < TOOLS_LIMIT):
                new[name] = pin
        return new

    def _write(self, pins: Mapping[str, Pin]) -> None:
        data = _encoder.encode(_File(VERSION, dict(pins)))
        if len(data) > FILE_LIMIT:
            raise ConfigurationError(str(self.path), f"would be over {FILE_LIMIT} bytes: the server has too many tools")
        write_atomically(self.path, data)

    def _locked(self) -> Any:
        return locked(self.path.with_suffix(".lock"))


@dataclass(frozen=True, slots=True)
class PinFiles:
    """
    The pins of all servers of a home.

    :param directory: is made when it is needed.
    :param now: gives seconds since the epoch.
    """

    directory: Path
    now: Callable[[], float]

    def of(self, server: str) -> PinFile:
        """:raises NotFound: no server can have this name."""
        if not BACKEND_NAME.match(server):
            raise NotFound(f"no server can be called {server!r}")
        return PinFile(self.directory / f"{server}.json", self.now)

    def servers(self) -> list[str]:
        """:returns: the servers of which something is pinned, in the order of their names."""
        if not self.directory.is_dir():
            return []
        return sorted(entry[:-5] for entry in os.listdir(self.directory) if _is_pins(entry))


def waiting(server: str, pins: Mapping[str, Pin], tools: Collection[str] = ()) -> dict[str, Pin]:
    """
    :param tools: empty for all.
    :returns: the pins of those tools whose latest definition waits.
    :raises NotFound: there are none, or not of one of ``tools``.
    """
    found = {name: pin for name, pin in sorted(pins.items()) if pin.waiting is not None}
    for name in tools:
        if name not in found:
            raise NotFound(f"no definition of {server} {name} waits to be accepted")
    if not found:
        raise NotFound(f"no tool of {server} waits to be accepted")
    return {name: pin for name, pin in found.items() if not tools or name in tools}


def _is_pins(entry: str) -> bool:
    return entry.endswith(".json") and BACKEND_NAME.match(entry[:-5]) is not None


class SessionPins:
    """
    :param own: the servers that come with this program: their definitions are ours, and change with our releases.
    :param tell: takes a sentence for the person whose session it is.
    """

    def __init__(self, files: PinFiles, own: Collection[str], tell: Callable[[str], None]) -> None:
        self._files, self._own, self._tell = files, own, tell
        self._marks: dict[str, tuple[int, int]] = {}

    def see(self, server: str, definitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Pin]:
        """
        :param definitions: what a server says now.
        :returns: what counts of each tool.
        :raises ConfigurationError: the file of the server is damaged.
        :raises Unavailable: it cannot be read or written.
        """
        if server in self._own:
            return {str(definition["name"]): Pin(dict(definition), 0.0) for definition in definitions}
        file = self._files.of(server)
        self._marks[server] = file.mark()  # before it is read: what is written meanwhile is read once more
        seen = file.see(definitions)
        if seen.new:
            first = f"{seen.new} tools are" if seen.new > 1 else "1 tool is"
            self._tell(f"MCP server {server}: {first} seen for the first time, and pinned as defined now")
        return seen.pins

    def changed(self, server: str) -> bool:
        """Whether something of a server was pinned or accepted since this session looked."""
        return server in self._marks and self._files.of(server).mark() != self._marks[server]
