"""Questions of commands at a terminal, with answers that are lines."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

PIECE = 4096
"""Most bytes of early input that are read at once."""


def confirmed(question: str, *, default: bool | None = None, err: bool = False) -> bool:
    """
    Ask on the terminal until the answer is yes or no.

    :param default: the meaning of an empty answer; ``None``: ask again.
    :param err: ask on standard error.
    :raises click.Abort: Ctrl-C, or the end of the input.
    """
    empty, choices = {None: (None, "y/n"), True: ("y", "Y/n"), False: ("n", "y/N")}[default]
    _show(question, err)
    text = f" [{choices}]"
    answer: bool = click.prompt(text, type=_YesOrNo(), default=empty, show_default=False, err=err)
    return answer


def chosen(question: str, choices: Sequence[str], default: str) -> str:
    """
    Ask on the terminal until the answer is one of the choices.

    :param default: the meaning of an empty answer.
    :raises click.Abort: Ctrl-C, or the end of the input.
    """
    _show(question, False)
    answer: str = click.prompt("", type=click.Choice(choices), default=default)
    return answer


class _YesOrNo(click.ParamType[bool]):
    name = "y or n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        """:returns: whether the answer is yes."""
        answer = str(value).strip().lower()
        if answer not in ("y", "yes", "n", "no"):
            self.fail("answer y or n", param, ctx)
        return answer in ("y", "yes")


def _show(question: str, err: bool) -> None:
    """Show a question, and after a quiet second that answers count: the choices that the caller prints then."""
    if not sys.stdin.isatty():
        click.echo(question, nl=False, err=err)
    elif _drop_early(sys.stdin.fileno(), lambda: click.echo(question, nl=False, err=err)):
        click.echo(" (too early: answer again)", nl=False, err=err)


def _drop_early(terminal: int, show: Callable[[], None]) -> bool:
    """
    Show a question, wait until a key would count, and drop what was typed until then, also before the question.

    :returns: whether that was anything.
    """
    from ironcurtain.escalation.decision_keys import DecisionKeys  # slow to import, and few commands ask

    keys, dropped, before = DecisionKeys(), False, termios.tcgetattr(terminal)
    each_key = [*before]
    each_key[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(terminal, termios.TCSADRAIN, each_key)
    try:
        show()
        keys.appear(terminal, time.monotonic())
        while (wait := (keys.due(terminal) or 0.0) - time.monotonic()) > 0:
            if select.select([terminal], [], [], wait)[0]:
                if not os.read(terminal, PIECE):
                    break  # the terminal is gone
                dropped = True
                keys.strike(time.monotonic())
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
    return dropped
