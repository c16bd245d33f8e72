"""
Definitions of tools, pinned when they were seen first, and what is wrong with those that came later.

A definition's text is read by the agent's model, so that a server can put orders into it, openly or in characters that
nobody sees. The first definition of a tool counts, in all sessions of a home; of another one under the same name, and
of one with hidden text, nothing is used until a person accepts it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ironcurtain.text.display import has_hidden_text, one_line, paragraphs

Reason = Literal["hidden-text", "changed-definition", "not-pinned"]
"""Why a tool is withheld; also the name of the rule that refuses its calls."""

WITHHELD: Mapping[str, str] = {
    "hidden-text": "its definition has text in it that nobody can see",
    "changed-definition": "its definition is another than the one that was pinned",
    "not-pinned": "its definition cannot be pinned: it is too long, or its server has too many tools",
}
"""What is said of each reason."""

NAMED, NAME_LIMIT = 5, 64
"""Most tools that one sentence names, and most characters of each."""

_encoder = msgspec.json.Encoder(order="deterministic")
_PICTURE = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_EMOJI = re.compile(f"[0-9#*]\ufe0f\u20e3|{_PICTURE}[\ufe0e\ufe0f]?(?:\u200d(?={_PICTURE}))?")
"""Pictures, with the selectors and joiners that are part of them and hide nothing (Unicode UTS #51, section 1.4)."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """
    What counts of one tool.

    :param definition: the one that agents may see; ``None`` if the first one had hidden text and waits.
    :param since: when it was seen first, or accepted, in seconds since the epoch.
    :param by: who accepted it; empty if nobody had to, as it was the first.
    :param waiting: the latest other definition, which a person may accept.
    """

    definition: dict[str, Any] | None
    since: float
    by: str = ""
    waiting: dict[str, Any] | None = None


def seen(pin: Pin | None, definition: dict[str, Any], now: float) -> Pin:
    """
    :param pin: ``None`` if the tool was never seen.
    :param now: seconds since the epoch.
    :returns: what counts after a server said this definition.
    """
    if pin is None:
        return Pin(None, now, waiting=definition) if has_hidden(definition) else Pin(definition, now)
    if pin.definition is not None and digest(pin.definition) == digest(definition):
        return pin
    return msgspec.structs.replace(pin, waiting=definition)


def accepted(pin: Pin, by: str, now: float) -> Pin:
    """:returns: what counts once a person has accepted the definition that waits."""
    return pin if pin.waiting is None else Pin(pin.waiting, now, by)


def withheld(pin: Pin | None, definition: Mapping[str, Any]) -> Reason | None:
    """:returns: why a tool that its server defines like this must not be used; ``None`` if it may."""
    if pin is None:
        return "not-pinned"
    if pin.definition is None:
        return "hidden-text"
    return None if digest(pin.definition) == digest(definition) else "changed-definition"


def told_of_withheld(server: str, tools: Sequence[str]) -> str:
    """:returns: for a person, that tools of a server are withheld, and what to do."""
    names = ", ".join(one_line(tool, NAME_LIMIT) for tool in tools[:NAMED])
    more = f" and {len(tools) - NAMED} more" if len(tools) > NAMED else ""
    many = "are" if len(tools) > 1 else "is"
    return f"MCP server {server}: {names}{more} {many} withheld. Look with: ironcurtain tools show {server}"


def digest(definition: Mapping[str, Any]) -> str:
    """:returns: SHA-256 of a definition, in hex, whatever the order of its members."""
    return hashlib.sha256(_encoder.encode(definition)).hexdigest()


def digest_of_waiting(pins: Mapping[str, Pin]) -> str:
    """:returns: SHA-256, in hex, of the names of tools and the definitions of them that wait."""
    return digest({name: digest(pin.waiting) for name, pin in pins.items() if pin.waiting is not None})


def comparison(name: str, pin: Pin) -> Iterator[str]:
    """:returns: the whole pinned definition beside the one that waits, as lines for a person's terminal."""
    old, new = (_lines(definition) for definition in (pin.definition, pin.waiting))
    if pin.waiting is None or pin.definition is None:
        yield f"{paragraphs(json.dumps(name))} {'waits; none was pinned before' if pin.waiting else 'as pinned'}:"
        yield from (f"  {line}" for line in new or old)
    else:
        yield f"{paragraphs(json.dumps(name))}, pinned (-) and waiting (+):"
        changes = difflib.unified_diff(old, new, lineterm="", n=max(len(old), len(new)))
        yield from list(changes)[3:]


def has_hidden(value: Any) -> bool:
    """Whether any text in a JSON value, or any key, holds what a reader cannot see."""
    if isinstance(value, str):
        return not (value.isascii() and value.isprintable()) and has_hidden_text(_EMOJI.sub("", value))
    if isinstance(value, Mapping):
        return any(has_hidden(key) or has_hidden(member) for key, member in value.items())
    return isinstance(value, list) and any(map(has_hidden, value))


def visible(value: Any) -> Any:
    """:returns: a JSON value with everything made visible that a reader cannot see; keys stay as they are."""
    if isinstance(value, str):
        return paragraphs(value) if has_hidden(value) else value
    if isinstance(value, Mapping):
        return {key: visible(member) for key, member in value.items()}
    return [visible(member) for member in value] if isinstance(value, list) else value


def _lines(definition: Mapping[str, Any] | None) -> list[str]:
    if definition is None:
        return []
    return paragraphs(json.dumps(definition, ensure_ascii=False, indent=2, sort_keys=True)).split("\n")
