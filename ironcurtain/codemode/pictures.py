"""The pictures of one session's tools: its programs hold handles of them, and may show them to the model."""

from __future__ import annotations

from typing import Any

from ironcurtain.llm.model import ImageBlock

HELD = 50
"""Most pictures of a session; then the oldest ones are given up."""

HELD_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes of all of them, likewise."""

SHOWN = 8
"""Most pictures that one program may show."""

PREFIX = "picture-"


class Pictures:
    """The pictures, of which programs know only identifiers and sizes."""

    def __init__(self) -> None:
        self._held: dict[str, ImageBlock] = {}
        self._count = self._bytes = 0
        self._shown: list[ImageBlock] = []

    def handles(self, value: Any) -> Any:
        """
        Keep the pictures of a tool's result.

        :param value: a picture, or a list with some.
        :returns: the value with a handle in place of each: a dict that JSON can express.
        """
        if isinstance(value, ImageBlock):
            return self._put(value)
        return [self.handles(item) for item in value] if isinstance(value, list) else value

    def show(self, picture: Any) -> None:
        """
        Show a picture to the model, after the program.

        :param picture: its handle, or the identifier in it.
        :raises TypeError: it is neither.
        :raises ValueError: the session has no such picture any more, or the program has shown too many.
        """
        name = picture.get("id") if isinstance(picture, dict) else picture
        if not isinstance(name, str):
            raise TypeError("show() takes a picture that a tool returned: a dict with its id")
        if name not in self._held:
            raise ValueError(f"this session has no {name[:40]!r} any more: make it again")
        if len(self._shown) >= SHOWN:
            raise ValueError(f"a program can show at most {SHOWN} pictures: show the others in the next one")
        self._shown.append(self._held[name])

    def take(self) -> tuple[ImageBlock, ...]:
        """:returns: what was shown since the last call."""
        shown, self._shown = tuple(self._shown), []
        return shown

    def _put(self, image: ImageBlock) -> dict[str, Any]:
        self._count += 1
        self._bytes += len(image.data)
        name = f"{PREFIX}{self._count}"
        self._held[name] = image
        while len(self._held) > HELD or (self._bytes > HELD_BYTES and len(self._held) > 1):
            self._bytes -= len(self._held.pop(next(iter(self._held))).data)
        return {"id": name, "media_type": image.media_type, "width": image.width, "height": image.height}
