"""Instructions that were typed, until the agent begins with them."""

from __future__ import annotations

import re
from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.shell.streams import AHEAD_LIMIT
from ironcurtain.shell.terminal_mode import Left
from ironcurtain.shell.waiting import Taken, WaitingInstructions
from ironcurtain.terminal.key_reader import PASTE_SECONDS
from ironcurtain.terminal.keys import TypedReader, stroke
from ironcurtain.text.display import one_line

LINE_SECONDS = 2.0
"""How long the shell has for a line that was typed ahead, before the agent begins all the same."""

JOIN_SECONDS = 0.05
"""How long after a prompt further instructions that were typed ahead are waited for; they are one with the first."""

UNTAKEN_SHOWN = 200
"""Most characters that are shown of what the agent did not take."""


_LINE = re.compile(rb"(?:[^\x00-\x1f\x7f]|\x1b\[200~.*?(?:\x1b\[201~|\Z))*", re.DOTALL)
"""What only adds to a line: characters, and pastes that are marked."""


def for_line(keys: bytes) -> Left:
    """
    :param keys: that came in one read with the key that gives the terminal back. A person presses one at a time, so
        that this may be a paste in a terminal that does not mark it: it runs nothing.
    """
    line = _LINE.match(keys)
    end = line.end() if line is not None else 0
    return Left(untaken=keys[end:], unread=keys[:end])


class TypedInstructions:
    """
    Lines that follow each other are one instruction.

    :ivar waiting: for a model that can be reached, or for the user to begin what a watcher proposes.
    :ivar ahead: what was typed on the next line before the agent had the terminal; the line was cleared.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self.waiting = WaitingInstructions()
        self.ahead = b""
        self._clock = clock
        self._lines: list[str] = []
        self._timer: IDelayedCall | None = None
        self._keys = TypedReader()
        self._followed_at = 0.0

    @property
    def in_paste(self) -> bool:
        """Whether a paste into the shell has begun and not ended."""
        return self._keys.in_paste

    def follow(self, keys: bytes) -> None:
        """:param keys: that the shell gets."""
        now, before = self._clock.seconds(), self._followed_at
        self._followed_at = now
        if self.in_paste and stroke(keys) == ("ctrl-c", False) and now - before >= PASTE_SECONDS:
            self._keys.end_paste()
        else:
            self._keys.feed(keys)

    def add(self, text: str) -> None:
        """:param text: what one of them says."""
        self._lines.append(text)

    def take(self) -> Taken:
        """:returns: what they say together."""
        taken = self.waiting.take("\n".join(self._lines).strip())
        self._lines.clear()
        return taken

    def again(self, left: Left, mark: str) -> tuple[bytes, tuple[str, ...]]:
        """
        The shell has the terminal again.

        :param mark: begins an instruction in it.
        :returns: what to type into it, and sentences about what is not typed again.
        """
        ahead, self.ahead = self.ahead, b""
        said = []
        if left.untaken:
            text = one_line(left.untaken.decode("utf-8", "replace"), UNTAKEN_SHOWN)
            said.append(f"typed while the agent worked, and not taken: {text}")
        cut = len(ahead) > AHEAD_LIMIT
        if ahead and (cut or left.unsent or any(byte < 0x20 or byte == 0x7F for byte in ahead)):
            said.append("the line that was typed ahead is in the shell's kill ring: Ctrl-Y brings it back")
            ahead = b""
        keys = f"{mark} {left.unsent}".encode() if left.unsent else ahead
        return keys + left.unread, tuple(said)

    def later(self, seconds: float, function: Callable[..., None], *arguments: object) -> None:
        """Call a function after so many seconds, and nothing that was to be called before."""
        self.not_yet()
        self._timer = self._clock.callLater(seconds, function, *arguments)

    def stop(self) -> None:
        """The shell ended."""
        self.not_yet()
        self.ahead = b""

    def not_yet(self) -> None:
        """Call nothing."""
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
