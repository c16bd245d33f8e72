"""A state machine for Ctrl-C and Ctrl-\\ at a program that may ignore them. Time is an input."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import msgspec
from automat import TypeMachineBuilder

WINDOW_SECONDS = 1.0
"""Seconds within which a second Ctrl-C must follow."""


class Action(Enum):
    """The action for a key."""

    FORWARD = "forward"
    """Pass it to the program, if the program gets input."""

    TERMINATE = "terminate"
    """Send SIGTERM, and SIGKILL after a grace period. The key is not passed on."""

    KILL = "kill"
    """Send SIGKILL at once. The key is not passed on."""

    SWALLOW = "swallow"
    """Do nothing: the program is ending."""


class _Inputs(Protocol):
    def ctrl_c(self) -> Action:
        """It was pressed."""

    def window_closed(self) -> None:
        """No second key followed in time."""

    def ctrl_backslash(self) -> Action:
        """It was pressed."""


class _Nothing(msgspec.Struct):
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
    The interrupts of one loop, since a program may have ended at the first Ctrl-C when the second one arrives.

    The first Ctrl-C is passed to the program. A second one within :data:`WINDOW_SECONDS` ends the loop; after that, the
    next counts as a first one. Ctrl-\\ kills at any time.
    """

    def __init__(self) -> None:
        self._inputs = _machine(_Nothing())
        self._pressed = 0.0

    def ctrl_c(self, now: float) -> Action:
        """:param now: seconds of a monotonic clock."""
        if now - self._pressed >= WINDOW_SECONDS:
            self._inputs.window_closed()
        action = self._inputs.ctrl_c()
        self._pressed = now
        return action

    def ctrl_backslash(self) -> Action:
        """:returns: :attr:`Action.KILL`, the first time."""
        return self._inputs.ctrl_backslash()
