"""What a confined process is asked for: one line of JSON on its input, and behind it the picture or the sound."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.senses.model import COUNT_LIMIT, LONGEST, Box, Line, Mark, SoundEvent, Utterance

BAD_DATA = 65
"""Exit status for a picture or a sound that cannot be read; standard error says why (``EX_DATAERR``)."""

MISSING = 69
"""Exit status where something is not installed; standard error says what (``EX_UNAVAILABLE``)."""

CHANGES_LIMIT = 50
"""Most changes that are found between two pictures."""

Boxes = Annotated[tuple[Box, ...], msgspec.Meta(max_length=1000)]


class MakePicture(msgspec.Struct, frozen=True, tag="picture"):
    """Make a picture for a model; the reply is a :class:`~ironcurtain.senses.model.Picture` in MessagePack."""

    region: Box | None = None
    hidden: Boxes = ()
    marks: Annotated[tuple[Mark, ...], msgspec.Meta(max_length=1000)] = ()
    longest: Annotated[int, msgspec.Meta(ge=1, le=4096)] = LONGEST


class ReadText(msgspec.Struct, frozen=True, tag="text"):
    """
    Read the text in a picture.

    The reply is one line of JSON, :class:`Enlarged`, and behind it the table of ``tesseract`` (its format ``tsv``).

    :ivar program: absolute path of ``tesseract``.
    """

    program: str
    region: Box | None = None
    hidden: Boxes = ()


class Transcribe(msgspec.Struct, frozen=True, tag="speech"):
    """Write down what is said; the reply is :data:`Utterances` in MessagePack."""


class FindEvents(msgspec.Struct, frozen=True, tag="sound"):
    """Find speech, singing and music; the reply is :data:`SoundEvents` in MessagePack."""


class FindChanges(msgspec.Struct, frozen=True, tag="changes"):
    """
    Find what has changed between two pictures; the reply is :data:`Changes` in MessagePack.

    :ivar size: in bytes, of the first one; the second one follows it.
    """

    size: Annotated[int, msgspec.Meta(ge=0)]
    region: Box | None = None
    hidden: Boxes = ()


class Enlarged(msgspec.Struct, frozen=True):
    """
    How the picture was prepared for reading.

    :ivar factor: pixels for one of the original.
    :ivar x, y: what of the original is its upper left corner.
    """

    factor: Annotated[int, msgspec.Meta(ge=1, le=8)]
    x: int
    y: int


Order = MakePicture | ReadText | FindChanges | Transcribe | FindEvents
Changes = Annotated[list[Box], msgspec.Meta(max_length=CHANGES_LIMIT)]
Utterances = Annotated[list[Utterance], msgspec.Meta(max_length=COUNT_LIMIT)]
SoundEvents = Annotated[list[SoundEvent], msgspec.Meta(max_length=COUNT_LIMIT)]


def written_order(order: Order, data: bytes) -> bytes:
    """:returns: what the process reads."""
    return msgspec.json.encode(order) + b"\n" + data


def read_order(given: bytes) -> tuple[Order, bytes]:
    """
    :returns: an order, and the picture or the sound.
    :raises UsageError: it is not as :func:`written_order` writes it.
    """
    line, _, data = given.partition(b"\n")
    try:
        return msgspec.json.decode(line, type=Order), data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise UsageError(f"the order is wrong: {e}") from None


WORD_LEVEL, COLUMNS = 5, 12
"""The level of words in the table of ``tesseract``, and its number of columns (its manual page, TSV)."""


def read_table(reply: bytes, limit: int) -> list[Line]:
    """
    Read what a process that was asked for text answered; it can be anything.

    :param limit: maximum length in characters of a line; the rest of a longer one is left out.
    :returns: the lines, of which each has the words that ``tesseract`` puts on one; at most
        :data:`~ironcurtain.senses.model.COUNT_LIMIT`.
    :raises UsageError: it is not in that form.
    """
    head, _, table = reply.partition(b"\n")
    try:
        made = msgspec.json.decode(head, type=Enlarged)
        rows = [row.split("\t") for row in table.decode().split("\n")]
        words = [row for row in rows if len(row) == COLUMNS and row[0] == str(WORD_LEVEL) and row[11].strip()]
        groups: dict[tuple[str, ...], list[list[str]]] = {}
        for word in words:
            groups.setdefault(tuple(word[1:5]), []).append(word)
        return [_line(group, made, limit) for group in list(groups.values())[:COUNT_LIMIT]]
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError, OverflowError) as e:
        raise UsageError(f"the table of words is wrong: {e}") from None


def _line(words: list[list[str]], made: Enlarged, limit: int) -> Line:
    left = min(int(word[6]) for word in words) // made.factor
    top = min(int(word[7]) for word in words) // made.factor
    right = max(int(word[6]) + int(word[8]) for word in words) // made.factor
    bottom = max(int(word[7]) + int(word[9]) for word in words) // made.factor
    sure = sum(float(word[10]) for word in words) / len(words) / 100
    box = Box(left + made.x, top + made.y, max(0, right - left), max(0, bottom - top))
    if not 0 <= sure <= 1:
        raise ValueError("a confidence is out of range")
    return Line(" ".join(word[11].strip() for word in words)[:limit], box, round(sure, 3))
