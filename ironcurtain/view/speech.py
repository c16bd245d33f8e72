"""Split the agent's text, which arrives in pieces, into lines: to print, and for the session's log."""

from __future__ import annotations

from collections.abc import Iterator

from ironcurtain.session import agent_events, events
from ironcurtain.text.columns import wrap
from ironcurtain.text.display import paragraphs

TAIL_LINES = 6
"""Maximum number of lines of unfinished text in the live part."""

TAIL_CHARACTERS = 4000
"""Maximum number of characters at the end of the unfinished text that are processed for it."""

LOGGED = 1024 * 1024
"""Maximum number of characters logged between two messages."""

LINE_COST = 50
"""Characters that the log adds to a line."""

_ENDING = (events.EscalationRaised, events.ToolCallRaised, agent_events.AgentToolStarted, events.CodeStarted)
"""Events that end a block: other lines follow."""


def shown(text: str) -> str:
    """:returns: a line of an agent's text, escaped, with tabs as spaces."""
    return paragraphs(text).expandtabs(4)


class Speech:
    """
    One block of text: everything between two other items.

    Blank lines are kept between other lines, and dropped at both ends. Lines are not escaped.

    :param flowing: whether lines are returned as soon as they end; otherwise all of them by :meth:`finish`.
    :ivar is_reported: whether the agent reports its own activity, so that ends of model requests say nothing about its
        text.
    """

    def __init__(self, flowing: bool) -> None:
        self._flowing, self.is_reported = flowing, False
        self.forget()

    @property
    def silent(self) -> bool:
        """Whether this block is empty."""
        return not self._pieces

    def forget(self) -> None:
        """Drop the unprinted text, and begin a new block."""
        self._pieces: list[str] = []
        self._unfinished, self._began, self._blank, self._over = "", False, False, False

    def heard(self, event: events.SessionEvent) -> Iterator[str]:
        """:returns: the lines that an event completes; of a turn's end only if it failed: see :meth:`answered`."""
        match event:
            case events.AgentText():
                yield from self.feed(event.text)
            case agent_events.AgentTextDropped() | events.ModelRetry():
                self.forget()
            case events.TurnStarted():
                self.is_reported = False
            case events.StepFinished():
                # What follows is a new block, unless the answer is complete already.
                self._over = self._over or not self.is_reported
            case agent_events.AgentActivity():
                self.is_reported = True
                yield from self.finish()
            case events.TurnFinished() if event.error:
                yield from self.finish()
            case _ if isinstance(event, _ENDING):
                yield from self.finish()

    def feed(self, text: str) -> Iterator[str]:
        """:returns: the lines that this piece completes."""
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
        yield line.rstrip()


class LoggedSpeech:
    """
    What the agent of one session says and changes, as lines for the session's log; not escaped.

    Of each message it has so much that no agent fills the disk.
    """

    def __init__(self) -> None:
        self._speech = Speech(flowing=True)
        self._room = LOGGED

    def lines(self, event: events.SessionEvent) -> list[str]:
        """:returns: the lines that an event completes."""
        if isinstance(event, events.TurnStarted):
            self._room = LOGGED
        before, found = self._room, self._completed(event)
        if before <= 0 or not found:
            return []
        self._room -= sum(len(line) + LINE_COST for line in found)
        return found if self._room > 0 else ["what follows until the next message is not logged: it is too much"]

    def _completed(self, event: events.SessionEvent) -> list[str]:
        match event:
            case events.TurnFinished(error=""):
                return list(self._speech.answered(event.answer))
            case agent_events.AgentToolFinished():
                return event.diff.splitlines()
            case _:
                return list(self._speech.heard(event))
