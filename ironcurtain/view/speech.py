"""Split the agent's text, which arrives in pieces, into lines to print."""

from __future__ import annotations

from collections.abc import Iterator

from ironcurtain.text.columns import wrap
from ironcurtain.text.display import paragraphs

TAIL_LINES = 6
"""Maximum number of lines of unfinished text in the live part."""

TAIL_CHARACTERS = 4000
"""Maximum number of characters at the end of the unfinished text that are processed for it."""


def shown(text: str) -> str:
    """:returns: a line of an agent's text, escaped, with tabs as spaces."""
    return paragraphs(text).expandtabs(4)


class Speech:
    """
    One block of text: everything between two other items.

    Blank lines are kept between other lines, and dropped at both ends.

    :param flowing: whether lines are returned as soon as they end; otherwise all of them by :meth:`finish`.
    """

    def __init__(self, flowing: bool) -> None:
        self._flowing = flowing
        self.forget()

    @property
    def silent(self) -> bool:
        """Whether this block is empty."""
        return not self._pieces

    def forget(self) -> None:
        """Drop the unprinted text, and begin a new block."""
        self._pieces: list[str] = []
        self._unfinished, self._began, self._blank, self._over = "", False, False, False

    def end_step(self) -> None:
        """A model request ended: further text is a new block, unless the answer is already complete."""
        self._over = True

    def feed(self, text: str) -> Iterator[str]:
        """:returns: the lines, escaped, that this piece completes."""
        if self._over:
            yield from self.finish()
        self._pieces.append(text)
        yield from self._flow(text)

    def finish(self) -> Iterator[str]:
        """:returns: the remaining lines. A new block begins."""
        for line in self._unfinished.split("\n"):
            yield from self._out(line)
        self.forget()

    def answered(self, answer: str) -> Iterator[str]:
        """
        The answer is complete.

        :returns: its unprinted lines; all of them if the answer differs from the text.
        """
        spoken, answer = "".join(self._pieces).lstrip(), answer.strip()
        for known in (spoken, spoken.rstrip()):
            if answer.startswith(known):
                answer = answer[len(known) :]
                break
        else:
            yield from self.finish()
        yield from self._flow(answer)
        yield from self.finish()

    def tail(self, width: int) -> tuple[str, ...]:
        """:returns: the end of the unprinted text, in lines of at most ``width`` columns."""
        text = shown(self._unfinished[-TAIL_CHARACTERS:])
        if not text.strip():
            return ()
        return tuple([piece for line in text.strip("\n").split("\n") for piece in wrap(line, width)][-TAIL_LINES:])

    def _flow(self, text: str) -> Iterator[str]:
        self._unfinished += text
        if self._flowing and "\n" in text:
            *whole, self._unfinished = self._unfinished.split("\n")
            for line in whole:
                yield from self._out(line)

    def _out(self, line: str) -> Iterator[str]:
        if not line.strip():
            self._blank = self._began
            return
        if self._blank:
            yield ""
        self._began, self._blank = True, False
        yield shown(line.rstrip())
