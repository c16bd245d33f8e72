"""Traces that are kept in a file: what a user thought of an instruction is added, and copies without texts are made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from ironcurtain.errors import NotFound
from ironcurtain.traces.span import Span, written

Rating = Literal["good", "bad"]
"""What a user thinks of what an agent did."""

_HASHED: Final = re.compile(r"sha256:[0-9a-f]{16}")


def spans(lines: bytes) -> Iterator[tuple[bytes, Span | None]]:
    """
    :param lines: of a file of spans.
    :returns: each line with what it says; ``None``: it is no span of a version that is known.
    """
    for line in lines.splitlines(keepends=True):
        try:
            yield line, msgspec.json.decode(line, type=Span)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield line, None


def find_instruction(lines: bytes, id_: str) -> Span:
    """
    :param id_: of the span of an instruction, or of its trace; empty for the last instruction of all.
    :returns: the span of the instruction; the last one of a trace.
    :raises NotFound: there is none.
    """
    found = [span for _, span in spans(lines) if span is not None and span.instruction]
    chosen = [span for span in found if not id_ or id_ in (span.span_id, span.trace_id)]
    if not chosen:
        raise NotFound(f"no instruction has the id {id_}" if id_ else "no instruction is recorded yet")
    return chosen[-1]


def with_feedback(lines: bytes, span: Span, feedback: str) -> bytes:
    """:returns: the lines, with feedback in that of one span."""
    return b"".join(
        msgspec.json.encode(msgspec.structs.replace(each, feedback=feedback)) + b"\n"
        if each is not None and (each.trace_id, each.span_id) == (span.trace_id, span.span_id)
        else line
        for line, each in spans(lines)
    )


def for_others(lines: bytes) -> bytes:
    """
    :returns: a copy of all spans that may be given away: texts, names of machines and ids of processes are replaced by
        hashes or left out; of feedback the rating is kept.
    """
    return b"".join(_anonymous(span) for _, span in spans(lines) if span is not None)


def _anonymous(span: Span) -> bytes:
    rating = span.feedback.partition(":")[0]
    bare = msgspec.structs.replace(span, host=_hash(span, span.host), pid=0, feedback="")
    hashed = msgspec.json.decode(written(bare, str, anonymize=True), type=Span)
    actions = tuple(
        msgspec.structs.replace(new, command=_once(old.command, new.command))
        for old, new in zip(span.actions, hashed.actions, strict=True)
    )
    kept = msgspec.structs.replace(
        hashed,
        instruction=_once(span.instruction, hashed.instruction),
        actions=actions,
        feedback=rating if rating in ("good", "bad") else "",
    )
    return msgspec.json.encode(kept) + b"\n"


def _once(old: str, new: str) -> str:
    """:returns: a hash: that of a text, or the one that it is already."""
    return old if _HASHED.fullmatch(old) else new


def _hash(span: Span, text: str) -> str:
    return f"sha256:{hashlib.sha256(f'{span.trace_id} {text}'.encode()).hexdigest()[:16]}"
