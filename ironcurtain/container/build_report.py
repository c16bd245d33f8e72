"""Read what the Engine reports of a build, or of a download of an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ironcurtain.jsonrpc.framing import Framer, TooLong

LINE_LIMIT = 1024 * 1024
"""Maximum size in bytes of one message."""


class _Message(msgspec.Struct):
    stream: str = ""
    status: str = ""
    error: str = ""
    aux: dict[str, Any] = {}


class BuildReport:
    """
    The messages of a build.

    :param progress: called with each line for people.
    :ivar image: the id of the image; empty: there is none yet.
    :ivar error: why it failed; empty: it did not.
    """

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress, self._framer = progress, Framer(LINE_LIMIT)
        self.image = self.error = ""

    def feed(self, data: bytes) -> None:
        """Take bytes as they come, in any slicing."""
        for line in self._framer.feed(data):
            if not isinstance(line, TooLong):
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=_Message)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # not a message of a build
        self.error = message.error or self.error
        self.image = str(message.aux.get("ID", self.image))
        for text in (message.stream + message.status).splitlines():
            if text.strip():
                self._progress(text)
