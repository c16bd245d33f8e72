"""What Ctrl-C and Ctrl-\\ mean to a program that may not listen: a state machine. Time is an input."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from automat import TypeMachineBuilder

WINDOW_SECONDS = 1.0
"""How soon a second Ctrl-C must come to count as the second one."""


class Action(Enum):
    """What is to be done about a key."""

    FORWARD = "forward"
    """Give it to the program, if the program gets keys at all."""

    TERMINATE = "terminate"
    """Send SIGTERM, and SIGKILL after a grace. The key is not passed on."""

    KILL = "kill"
    """Send SIGKILL at once. The key is not passed on."""

    SWALLOW = "swallow"
    """Do nothing: the program is on its way out."""


class _Inputs(Protocol):
    def ctrl_c(self) -> Action:
        """It was pressed."""

    def window_closed(self) -> None:
        """No second one came in time."""

    def ctrl_backslash(self) -> Action:
        """It was pressed."""


@dataclass(slots=True)
class _Nothing:
    """The machine keeps no data."""


_builder = TypeMachineBuilder(_Inputs, _Nothing)
_idle, _armed, _terminating, _killing = (_builder.state(name) for name in ("idle", "armed", "terminating", "killing"))

_idle.upon(_Inputs.ctrl_c).to(_armed).returns(Action.FORWARD)
_armed.upon(_Inputs.ctrl_c).to(_terminating).returns(Action.TERMINATE)
_armed.upon(_Inputs.window_closed).to(_idle).returns(None)
_terminating.upon(_Inputs.ctrl_c).loop().returns(Action.SWALLOW)
_killing.upon(_Inputs.ctrl_c).loop().returns(Action.SWALLOW)
_killing.upon(_Inputs.ctrl_backslash).loop().returns(Action.SWALLOW)
for _state in (_idle, _armed, _terminating):
    _state.upon(_Inputs.ctrl_backslash).to(_killing).returns(Action.KILL)
for _state in (_idle, _terminating, _killing):
    _state.upon(_Inputs.window_closed).loop().returns(None)
_machine = _builder.build()


class Interrupts:
    """
    Those of one loop, since a program may have ended of the first Ctrl-C when the second one comes.

    The first Ctrl-C is the program's own. A second one within :data:`WINDOW_SECONDS` ends all; when the window has
    passed, the next is a first one again. Ctrl-\\ kills at any time.
    """

    def __init__(self) -> None:
        self._inputs = _machine(_Nothing())
        self._pressed = 0.0

    def ctrl_c(self, now: float) -> Action:
        """:param now: in seconds, from any clock that does not go back."""
        if now - self._pressed >= WINDOW_SECONDS:
            self._inputs.window_closed()
        action = self._inputs.ctrl_c()
        self._pressed = now
        return action

    def ctrl_backslash(self) -> Action:
        """:returns: :attr:`Action.KILL`, the first time."""
        return self._inputs.ctrl_backslash()
