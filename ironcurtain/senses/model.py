"""What is found in pictures and sound. All texts come from whatever was on the screen or spoken: they are data."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

PICTURE_LIMIT = 32 * 1024 * 1024
"""Maximum size in bytes of a picture that is read."""

PIXELS_LIMIT = 40 * 1024 * 1024
"""Maximum number of pixels of a picture that is decoded: five screens of 3840x2160, or one of 7680x4320."""

LONGEST = 1024
"""Pixels of the longer side of a picture for a model, unless the caller asks for fewer."""

RATE = 16_000
"""Samples of sound in a second."""

SAMPLE = 2
"""Bytes of a sample: signed, least significant byte first (``s16le`` of PulseAudio)."""

SOUND_SECONDS = 60
"""Maximum length in seconds of a sound."""

SOUND_LIMIT = SOUND_SECONDS * RATE * SAMPLE
"""Maximum size in bytes of a sound."""

TEXT_LIMIT = 4000
"""Maximum length in characters of a line or an utterance."""

COUNT_LIMIT = 5000
"""Most lines, utterances or events of one picture or sound."""

Text = Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)]


class Box(msgspec.Struct, frozen=True):
    """A rectangle in pixels; ``x`` and ``y`` are its upper left corner, counted from that of the picture."""

    x: int
    y: int
    width: Annotated[int, msgspec.Meta(ge=0)]
    height: Annotated[int, msgspec.Meta(ge=0)]


class Line(msgspec.Struct, frozen=True):
    """
    A line of text in a picture.

    :ivar confidence: from 0 to 1: how sure the recognition is.
    """

    text: Text
    box: Box
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]


class Mark(msgspec.Struct, frozen=True):
    """A frame with a short label, such as a number, that is drawn into a picture."""

    label: Annotated[str, msgspec.Meta(max_length=8)]
    box: Box


class Picture(msgspec.Struct, frozen=True):
    """
    A picture that a model can be shown.

    :ivar png: made anew from the pixels, so that nothing but them is in it.
    :ivar scale: pixels of it for one of the original (of the region, if one was cut out): at most 1.
    """

    png: bytes
    width: int
    height: int
    scale: float


class Utterance(msgspec.Struct, frozen=True):
    """What was said, from ``start`` to ``end`` in seconds."""

    start: float
    end: float
    text: Text


class SoundEvent(msgspec.Struct, frozen=True):
    """What is heard, from ``start`` to ``end`` in seconds."""

    start: float
    end: float
    kind: Literal["speech", "singing", "music"]
