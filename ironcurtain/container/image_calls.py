"""The Engine's calls about images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, BinaryIO
from urllib.parse import quote

import msgspec

from ironcurtain.container.errors import EngineError
from ironcurtain.container.http import EngineHttp
from ironcurtain.jsonrpc.framing import Framer, TooLong

BUILD_SILENCE_SECONDS = 600.0
"""How long a build may say nothing before it is given up (one download of a few hundred MB is silent)."""

LINE_LIMIT = 1024 * 1024
"""Most bytes of one message of a build."""


class ImageCalls:
    """
    What can be done with images.

    Every method raises :class:`~ironcurtain.container.errors.EngineUnavailable` if the Engine does not answer, and
    :class:`EngineError` for what it refuses (status 404: there is no such image).
    """

    def __init__(self, http: EngineHttp) -> None:
        self._http = http

    async def list(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """:returns: a summary of each image that has all these labels; an empty value stands for any."""
        wanted = [f"{name}={value}" if value else name for name, value in labels.items()]
        query = {"filters": msgspec.json.encode({"label": wanted}).decode()}
        found: list[dict[str, Any]] = msgspec.json.decode(await self._http.call("GET", "/images/json", query))
        return found

    async def inspect(self, name: str) -> dict[str, Any]:
        """:returns: everything about an image, as the Engine says it."""
        return msgspec.json.decode(await self._http.call("GET", f"{_image(name)}/json"), type=dict[str, Any])

    async def remove(self, name: str) -> None:
        """Remove an image's name, and the image with its last one. Refused (409) while a container uses it."""
        await self._http.call("DELETE", _image(name))

    async def build(
        self,
        context: BinaryIO,
        *,
        tag: str,
        labels: Mapping[str, str],
        arguments: Mapping[str, str],
        network: str,
        progress: Callable[[str], None],
    ) -> str:
        """
        Build an image.

        :param context: a tar archive with a ``Dockerfile`` in it; closed in the end.
        :param arguments: values of the Dockerfile's ``ARG`` lines.
        :param network: of the steps: ``default``, ``host`` or ``none``.
        :param progress: gets what the build prints, line by line.
        :returns: the image's id.
        :raises EngineError: a step failed; the message is the build's last word.
        """
        query = {
            "t": tag,
            "labels": msgspec.json.encode(labels).decode(),
            "buildargs": msgspec.json.encode(arguments).decode(),
            "networkmode": network,
            "rm": "true",
            "forcerm": "true",
        }
        report = _Report(progress)
        await self._http.upload("/build", query, context, report.feed, BUILD_SILENCE_SECONDS)
        if report.error or not report.image:
            raise EngineError(500, report.error or "the build ended without an image")
        return report.image


class _Message(msgspec.Struct):
    stream: str = ""
    status: str = ""
    error: str = ""
    aux: dict[str, Any] = {}


class _Report:
    """What a build says while it runs."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress, self._framer = progress, Framer(LINE_LIMIT)
        self.image = self.error = ""

    def feed(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            if not isinstance(line, TooLong):
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=_Message)
        except msgspec.DecodeError:
            return  # no message of a build but of a refusal, which has a status of its own
        self.error = message.error or self.error
        self.image = str(message.aux.get("ID", self.image))
        for text in (message.stream + message.status).splitlines():
            if text.strip():
                self._progress(text)


def _image(name: str) -> str:
    return f"/images/{quote(name, safe='/:@')}"
