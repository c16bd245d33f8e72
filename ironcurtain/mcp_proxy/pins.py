"""
Tool definitions as they were first seen, and what is wrong with those that came later. Pure.

A definition's text is read by the agent's model, so that a server can put orders into it, openly or in characters that
nobody sees. The first definition of a tool counts; another one under the same name, and one with hidden text, is held
until a person accepts it: until then the agent sees the first definition, hidden characters made visible, and each call
is put before a person.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from ironcurtain.display import has_hidden_text, paragraphs

Reason = Literal["hidden-text", "changed-definition"]

_encoder = msgspec.json.Encoder(order="deterministic")
_PICTURE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI = re.compile(f"[0-9#*]\ufe0f\u20e3|{_PICTURE}[\ufe0e\ufe0f]?(?:\u200d(?={_PICTURE}))?")
"""Pictures, with the selectors and joiners that are part of them and hide nothing (Unicode UTS #51, section 1.4)."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """
    What a server's list says of one tool, if it was not said before.

    :param digest: SHA-256 of the definition in canonical form, in hex.
    :param held: why a person has to accept it; ``None`` if there is no need.
    """

    tool: str
    digest: str
    held: Reason | None


@dataclass(frozen=True, slots=True)
class Pinned:
    """
    A definition as it is offered to agents.

    :param definition: the accepted one; hidden text in it is made visible.
    :param latest: digest of what the server says now.
    :param held: why calls of the tool need a person; ``None`` if they do not.
    """

    definition: Mapping[str, Any]
    latest: str
    held: Reason | None


@dataclass(slots=True)
class _Pin:
    digest: str
    definition: Mapping[str, Any]
    accepted: bool
    latest: str
    latest_definition: Mapping[str, Any]


@dataclass(slots=True)
class Pins:
    """The definitions of one session's tools, by server and name."""

    _pins: dict[tuple[str, str], _Pin] = field(default_factory=dict)

    def see(self, server: str, definition: Mapping[str, Any]) -> Sighting | None:
        """:returns: what is to be recorded, or ``None`` if this definition was the latest one before."""
        tool, found = str(definition.get("name")), digest(definition)
        pin = self._pins.get((server, tool))
        if pin is None:
            hidden = has_hidden(definition)
            self._pins[server, tool] = _Pin(found, definition, not hidden, found, definition)
            return Sighting(tool, found, "hidden-text" if hidden else None)
        if pin.latest == found:
            return None
        pin.latest, pin.latest_definition = found, definition
        return Sighting(tool, found, _held(pin))

    def pinned(self, server: str, tool: str) -> Pinned:
        """:returns: what agents may see of a tool that was seen before."""
        pin = self._pins[server, tool]
        definition = _visible(pin.definition) if has_hidden(pin.definition) else pin.definition
        return Pinned(definition, pin.latest, _held(pin))

    def accept(self, server: str, tool: str) -> None:
        """A person let a call of this tool through: the latest definition counts from now on."""
        pin = self._pins[server, tool]
        pin.digest, pin.definition, pin.accepted = pin.latest, pin.latest_definition, True


def digest(definition: Mapping[str, Any]) -> str:
    """:returns: SHA-256 of a definition, in hex, whatever the order of its members."""
    return hashlib.sha256(_encoder.encode(definition)).hexdigest()


def has_hidden(value: Any) -> bool:
    """Whether any text in a JSON value, or any key, holds what a reader cannot see."""
    if isinstance(value, str):
        return not (value.isascii() and value.isprintable()) and has_hidden_text(_EMOJI.sub("", value))
    if isinstance(value, Mapping):
        return any(has_hidden(key) or has_hidden(member) for key, member in value.items())
    return isinstance(value, list) and any(map(has_hidden, value))


def _held(pin: _Pin) -> Reason | None:
    if pin.latest != pin.digest:
        return "changed-definition"
    return None if pin.accepted else "hidden-text"


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return paragraphs(value) if has_hidden(value) else value
    if isinstance(value, Mapping):
        return {key: _visible(member) for key, member in value.items()}
    return [_visible(member) for member in value] if isinstance(value, list) else value
