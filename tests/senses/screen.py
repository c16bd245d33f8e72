"""A real screen without a monitor, and a window with a text on it."""

from __future__ import annotations

import io
import os
import struct
import subprocess
from typing import Any

from PIL import Image
from twisted.trial.unittest import TestCase

from tests.audit.doubles import scratch
from tests.mitm_proxy.waiting import until
from tests.programs import program

BLACK = 0.9
"""Share of a screen that is black without a window."""


class Screen:
    """
    :param text: what the window asks.
    """

    def __init__(self, case: TestCase, text: str) -> None:
        directory = scratch(case)
        self._file, self._last = directory / "Xvfb_screen0", b""
        reading, writing = os.pipe()
        arguments = ("-displayfd", str(writing), "-screen", "0", "640x480x24", "-fbdir", str(directory))
        self._start(case, [program("Xvfb"), *arguments], pass_fds=(writing,))
        os.close(writing)
        with os.fdopen(reading) as told:
            display = told.readline().strip()
        environ = {"DISPLAY": f":{display}", "NO_AT_BRIDGE": "1", "PATH": os.defpath, "HOME": str(directory)}
        self._start(case, [program("zenity"), "--question", "--text", text], env=environ)

    def _start(self, case: TestCase, line: list[str], **options: Any) -> None:
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        case.addCleanup(process.wait)
        case.addCleanup(process.kill)

    async def shown(self) -> bytes:
        """:returns: the screen as a PNG file, once the window is on it and does not change."""
        await until(self._still, "a window on the screen")
        written = io.BytesIO()
        self._picture().save(written, "PNG")
        return written.getvalue()

    def _still(self) -> bool:
        picture = self._picture().convert("L")
        before, self._last = self._last, picture.tobytes()
        return before == self._last and self._last.count(0) < BLACK * len(self._last)

    def _picture(self) -> Image.Image:
        """:returns: what the server keeps in its file, in the format of xwd (X11/XWDFile.h)."""
        data = self._file.read_bytes()
        head = struct.unpack_from("!25I", data)
        width, height, row, colours = head[4], head[5], head[12], head[19]
        pixels = data[head[0] + 12 * colours :]
        return Image.frombytes("RGB", (width, height), pixels[: row * height], "raw", "BGRX", row, 1)
