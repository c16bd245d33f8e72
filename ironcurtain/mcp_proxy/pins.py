"""
Pin tools' definitions when they are first seen, and detect later changes.

The agent's model reads a tool's definition, so a server can put instructions into it, openly or in invisible
characters. The first definition of a tool is in force in all sessions of a home. A changed definition, or one with
hidden text, is not used until a person accepts it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ironcurtain.errors import ConfigurationError, NotFound, StaleDecision, Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.home.layout import private_directory, read_configuration
from ironcurtain.home.parsing import parse_json
from ironcurtain.home.structured import check_version, convert
from ironcurtain.mcp_proxy.names import BACKEND_NAME
from ironcurtain.text.display import has_hidden_text, paragraphs, shorten

Reason = Literal["hidden-text", "changed-definition", "not-pinned"]
"""Why a tool is withheld; also the name of the rule that refuses its calls."""

WITHHELD: Mapping[str, str] = {
    "hidden-text": "its definition contains invisible text",
    "changed-definition": "its definition differs from the pinned one",
    "not-pinned": "its definition cannot be pinned: it is too long, or its server has too many tools",
}
"""The sentence for each reason."""

NAMED, NAME_LIMIT = 5, 64
"""Maximum number of tools named in a sentence, and maximum length in characters of each name."""

_encoder = msgspec.json.Encoder(order="deterministic")
_PICTURE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI = re.compile(f"[0-9#*]\ufe0f\u20e3|{_PICTURE}[\ufe0e\ufe0f]?(?:\u200d(?={_PICTURE}))?")
"""Pictographs, with their selectors and joiners, which hide nothing (Unicode UTS #51, section 1.4)."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """
    The pin of one tool.

    :param definition: the one that agents may see; ``None`` if the first one had hidden text and waits.
    :param since: when it was first seen, or accepted, in seconds since the epoch.
    :param by: who accepted it; empty if it was the first.
    :param waiting: the latest different definition, which a person may accept.
    """

    definition: dict[str, Any] | None
    since: float
    by: str = ""
    waiting: dict[str, Any] | None = None


def seen(pin: Pin | None, definition: dict[str, Any], now: float) -> Pin:
    """
    :param pin: ``None`` if the tool was never seen.
    :param now: seconds since the epoch.
    :returns: the pin after a server sent this definition.
    """
    if pin is None:
        return Pin(None, now, waiting=definition) if has_hidden(definition) else Pin(definition, now)
    if pin.definition is not None and digest(pin.definition) == digest(definition):
        return pin
    return msgspec.structs.replace(pin, waiting=definition)


def accepted(pin: Pin, by: str, now: float) -> Pin:
    """:returns: the pin after a person accepted the waiting definition."""
    return pin if pin.waiting is None else Pin(pin.waiting, now, by)


def withheld(pin: Pin | None, definition: Mapping[str, Any]) -> Reason | None:
    """:returns: why a tool with this definition must not be used; ``None`` if it may."""
    if pin is None:
        return "not-pinned"
    if pin.definition is None:
        return "hidden-text"
    return None if digest(pin.definition) == digest(definition) else "changed-definition"


def withheld_notice(server: str, tools: Sequence[str]) -> str:
    """:returns: a message for the user that tools of a server are withheld, and what to do."""
    names = ", ".join(shorten(tool, NAME_LIMIT) for tool in tools[:NAMED])  # who shows it escapes it
    more = f" and {len(tools) - NAMED} more" if len(tools) > NAMED else ""
    many = "are" if len(tools) > 1 else "is"
    return f"MCP server {server}: {names}{more} {many} withheld. View the changes with: ironcurtain tools show {server}"


def digest(definition: Mapping[str, Any]) -> str:
    """:returns: SHA-256 of a definition, in hex, independent of the order of its members."""
    return hashlib.sha256(_encoder.encode(definition)).hexdigest()


def digest_of_waiting(pins: Mapping[str, Pin]) -> str:
    """:returns: SHA-256, in hex, of the names of tools with their waiting definitions."""
    return digest({name: digest(pin.waiting) for name, pin in pins.items() if pin.waiting is not None})


def comparison(name: str, pin: Pin) -> Iterator[str]:
    """:returns: the complete pinned and waiting definitions as lines for a terminal."""
    old, new = (_lines(definition) for definition in (pin.definition, pin.waiting))
    if pin.waiting is None or pin.definition is None:
        yield f"{paragraphs(json.dumps(name))} {'waits; none was pinned before' if pin.waiting else 'as pinned'}:"
        yield from (f"  {line}" for line in new or old)
    else:
        yield f"{paragraphs(json.dumps(name))}, pinned (-) and waiting (+):"
        changes = difflib.unified_diff(old, new, lineterm="", n=max(len(old), len(new)))
        yield from list(changes)[3:]


def has_hidden(value: Any) -> bool:
    """:returns: whether a string or key in a JSON value contains invisible characters."""
    if isinstance(value, str):
        return not (value.isascii() and value.isprintable()) and has_hidden_text(_EMOJI.sub("", value))
    if isinstance(value, Mapping):
        return any(has_hidden(key) or has_hidden(member) for key, member in value.items())
    return isinstance(value, list) and any(map(has_hidden, value))


def visible(value: Any) -> Any:
    """:returns: a JSON value with invisible characters made visible; keys are unchanged."""
    if isinstance(value, str):
        return paragraphs(value) if has_hidden(value) else value
    if isinstance(value, Mapping):
        return {key: visible(member) for key, member in value.items()}
    return [visible(member) for member in value] if isinstance(value, list) else value


def _lines(definition: Mapping[str, Any] | None) -> list[str]:
    if definition is None:
        return []
    return paragraphs(json.dumps(definition, ensure_ascii=False, indent=2, sort_keys=True)).split("\n")


VERSION = 1
"""The newest readable version of the files' format."""

DEFINITION_LIMIT = 256 * 1024
"""Maximum size in bytes of a pinned definition (the longest known has 30 KB)."""

TOOLS_LIMIT = 5000
"""Maximum number of pinned tools of a server."""

FILE_LIMIT = 16 * 1024 * 1024
"""Maximum size in bytes of a file."""

_encoder = msgspec.json.Encoder(order="deterministic")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    tools: dict[str, Pin]


class Seen(NamedTuple):
    """
    The pins after a server's list.

    :param pins: the pins of its tools, without those beyond a limit.
    :param new: how many definitions were pinned now.
    """

    pins: dict[str, Pin]
    new: int


class PinFile(msgspec.Struct, frozen=True):
    """
    The pins of one server.

    :param now: returns seconds since the epoch.
    """

    path: Path
    now: Callable[[], float]

    def read(self) -> dict[str, Pin]:
        """
        :returns: the pins by tool name; none if nothing is pinned yet.
        :raises ConfigurationError: the file is damaged. Then no tool of the server may be used.
        """
        try:
            return self._read()
        except ConfigurationError as e:
            mend = "repair it, or remove it to pin the server's next definitions"
            raise ConfigurationError(str(self.path), f"{e.detail}: {mend}", field=e.field) from None

    def mark(self) -> tuple[int, int]:
        """:returns: a value that changes with the file's content."""
        try:
            status = self.path.stat(follow_symlinks=False)
        except FileNotFoundError:
            return 0, 0
        return status.st_ino, status.st_mtime_ns

    def see(self, definitions: Iterable[Mapping[str, Any]]) -> Seen:
        """
        Take the definitions that a server sends: pin those of new tools, note those that differ.

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
            raise Unavailable(f"cannot use {self.path}, the file of pinned definitions: {e.strerror}") from None
        new = [name for name, pin in known.items() if name not in before and pin.definition is not None]
        return Seen({name: known[name] for name in said if name in known}, len(new))

    def accept(self, tools: Collection[str], digest: str, by: str) -> dict[str, Pin]:
        """
        Accept waiting definitions.

        :param tools: the tools; empty for all of this server.
        :param digest: digest of what was shown to the person.
        :param by: the person.
        :returns: the new pins of those tools.
        :raises NotFound: nothing waits, or not for one of these tools.
        :raises StaleDecision: the waiting definitions are not those that were shown.
        :raises ConfigurationError: the file is damaged.
        """
        if not self.path.exists():
            raise NotFound(f"no definition of {self.path.stem} waits to be accepted")
        with self._locked():
            known = self.read()
            chosen = waiting(self.path.stem, known, tools)
            if digest_of_waiting(chosen) != digest:
                raise StaleDecision("the waiting definitions are not those that were shown: view them again")
            new = {name: accepted(pin, by, self.now()) for name, pin in chosen.items()}
            self._write({**known, **new})
        return new

    def _read(self) -> dict[str, Pin]:
        source = str(self.path)
        if self.path.is_symlink() or (self.path.exists() and self.path.stat().st_size > FILE_LIMIT):
            raise ConfigurationError(source, f"is a link, or larger than {FILE_LIMIT} bytes")
        text = read_configuration(self.path)
        if text is None:
            return {}
        parsed = parse_json(source, text)
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
            raise ConfigurationError(
                str(self.path), f"would be larger than {FILE_LIMIT} bytes: the server has too many tools"
            )
        write_atomically(self.path, data)

    def _locked(self) -> Any:
        return locked(self.path.with_suffix(".lock"))


class PinFiles(msgspec.Struct, frozen=True):
    """
    The pins of all servers of a home.

    :param directory: created when needed.
    :param now: returns seconds since the epoch.
    """

    directory: Path
    now: Callable[[], float]

    def of(self, server: str) -> PinFile:
        """:raises NotFound: the name is not valid for a server."""
        if not BACKEND_NAME.match(server):
            raise NotFound(f"{server!r} is not a valid name of a server")
        return PinFile(self.directory / f"{server}.json", self.now)

    def servers(self) -> list[str]:
        """:returns: the servers with pins, sorted by name."""
        if not self.directory.is_dir():
            return []
        return sorted(entry[:-5] for entry in os.listdir(self.directory) if _is_pins(entry))


def waiting(server: str, pins: Mapping[str, Pin], tools: Collection[str] = ()) -> dict[str, Pin]:
    """
    :param tools: empty for all.
    :returns: the pins of those tools that have a waiting definition.
    :raises NotFound: there are none, or not for one of ``tools``.
    """
    found = {name: pin for name, pin in sorted(pins.items()) if pin.waiting is not None}
    for name in tools:
        if name not in found:
            raise NotFound(f"no definition of {server} {name} waits to be accepted")
    if not found:
        raise NotFound(f"no definition of {server} waits to be accepted")
    return {name: pin for name, pin in found.items() if not tools or name in tools}


def _is_pins(entry: str) -> bool:
    return entry.endswith(".json") and BACKEND_NAME.match(entry[:-5]) is not None


class SessionPins:
    """
    :param own: IronCurtain's own servers, whose definitions are not pinned, since they change with releases.
    :param tell: called with a message for the user.
    """

    def __init__(self, files: PinFiles, own: Collection[str], tell: Callable[[str], None]) -> None:
        self._files, self._own, self._tell = files, own, tell
        self._marks: dict[str, tuple[int, int]] = {}

    def see(self, server: str, definitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Pin]:
        """
        :param definitions: the definitions that a server sends now.
        :returns: the pin of each tool.
        :raises ConfigurationError: the file of the server is damaged.
        :raises Unavailable: it cannot be read or written.
        """
        if server in self._own:
            return {str(definition["name"]): Pin(dict(definition), 0.0) for definition in definitions}
        file = self._files.of(server)
        self._marks[server] = file.mark()  # taken before reading, so that a concurrent change is read next time
        seen = file.see(definitions)
        if seen.new:
            first = f"{seen.new} tools are" if seen.new > 1 else "1 tool is"
            self._tell(f"MCP server {server}: {first} new and pinned with the current definition")
        return seen.pins

    def changed(self, server: str) -> bool:
        """Whether a definition of a server was pinned or accepted since this session read its pins."""
        return server in self._marks and self._files.of(server).mark() != self._marks[server]
