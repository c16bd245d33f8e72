"""Output of programs as text for a terminal, as it comes."""

from __future__ import annotations

import codecs

from ironcurtain.text.display import visible


class EscapedOutput:
    """
    Escapes the output of a program without a terminal, so that it can do nothing to the terminal that shows it.

    Characters and line ends may be split between two reads: their beginning waits for the rest.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = ""

    def feed(self, data: bytes, last: bool = False) -> str:
        """
        :param data: output, split anywhere.
        :param last: whether nothing follows.
        :returns: the text to show; it has line ends and tabs, but no other control characters.
        """
        text = self._rest + self._decoder.decode(data, last)
        self._rest = "\r" if text.endswith("\r") and not last else ""
        return visible(text.removesuffix(self._rest).replace("\r\n", "\n"))
