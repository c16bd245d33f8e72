"""Sounds for tests."""

from __future__ import annotations

import array
import subprocess

from ironcurtain.senses.model import RATE
from tests.programs import program


def spoken(text: str) -> bytes:
    """:returns: the sound of a voice."""
    wave = subprocess.run(
        [program("espeak-ng"), "--stdout", text], stdin=subprocess.DEVNULL, capture_output=True, check=True
    ).stdout
    samples = array.array("h", wave[44 : len(wave) // 2 * 2])  # 22050 samples a second, behind a head of 44 bytes
    count = len(samples) * RATE // 22050
    return array.array("h", (samples[place * 22050 // RATE] for place in range(count))).tobytes()
