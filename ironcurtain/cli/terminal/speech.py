"""What an agent says: pieces go in as they come, lines to print come out."""

from __future__ import annotations

from collections.abc import Iterator

from ironcurtain.text.columns import wrap
from ironcurtain.text.display import paragraphs

TAIL_LINES = 6
"""Most lines of unfinished text that are shown live."""

TAIL_CHARACTERS = 4000
"""Most characters at the end of the unfinished text that are looked at for this."""


def shown(text: str) -> str:
    """:returns: a line of an agent's text, escaped, with its tabs as spaces."""
    return paragraphs(text).expandtabs(4)


class Speech:
    """
    One stretch of text: all that is said between two other things.

    Blank lines are kept between others, and dropped at both ends.

    :param flowing: whether lines come out as soon as they end; otherwise all of them with :meth:`finish`.
    """

    def __init__(self, flowing: bool) -> None:
        self._flowing = flowing
        self.forget()

    @property
    def silent(self) -> bool:
        """Whether nothing was said in this stretch."""
        return not self._pieces

    def forget(self) -> None:
        """Drop what did not come out yet, and begin a new stretch."""
        self._pieces: list[str] = []
        self._unfinished, self._began, self._blank, self._over = "", False, False, False

    def end_step(self) -> None:
        """A model request is over: what is said next is a new stretch, unless the answer is already complete."""
        self._over = True

    def feed(self, text: str) -> Iterator[str]:
        """:returns: the lines, escaped, that this piece finishes."""
        if self._over:
            yield from self.finish()
        self._pieces.append(text)
        yield from self._flow(text)

    def finish(self) -> Iterator[str]:
        """:returns: what is left, and begin a new stretch."""
        for line in self._unfinished.split("\n"):
            yield from self._out(line)
        self.forget()

    def answered(self, answer: str) -> Iterator[str]:
        """
        The answer is complete.

        :returns: the lines of it that did not come out yet; all of them if it is not what was said.
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
        """:returns: the end of what did not come out yet, in lines of at most ``width`` columns."""
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
