"""Fill in a form line by line: what each line of a person means, for every front end that reads lines."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from ironcurtain.escalation.form_values import FieldError
from ironcurtain.escalation.forms import Filling, Form
from ironcurtain.view.forms import filled_lines, prompt_words

HELP = "an empty line is the default, or nothing; /back: the field before; /decline or /cancel tell the server; /later"
"""What can be entered in place of a value."""


class Act(Enum):
    """What is to be done after a line."""

    GO_ON = auto()
    SEND = auto()
    DECLINE = auto()
    CANCEL = auto()
    LEAVE = auto()
    """Nothing: the form waits on."""


class Reply(NamedTuple):
    """:ivar lines: to show, escaped."""

    act: Act
    lines: list[str]


_COMMANDS = {"/decline": Act.DECLINE, "/cancel": Act.CANCEL, "/later": Act.LEAVE}


class FormDialogue:
    """
    One person at one form.

    :param digest: of the form that is shown.
    """

    def __init__(self, number: int, digest: str, form: Form) -> None:
        self.number, self.digest = number, digest
        self._filling = Filling(form)

    @property
    def values(self) -> dict[str, object]:
        """What was entered so far."""
        return self._filling.values

    @property
    def complete(self) -> bool:
        """Whether only the confirmation is missing."""
        return self._filling.current is None

    @property
    def prompt(self) -> str:
        """What is asked next, on one line."""
        return prompt_words(self._filling)

    def begin(self) -> list[str]:
        """:returns: the lines before the first field."""
        return [HELP, self.prompt]

    def enter(self, line: str) -> Reply:
        """Take a line: a value, a command, or the confirmation."""
        word = line.strip()
        if line.startswith("/") and word in _COMMANDS:
            return Reply(_COMMANDS[word], [])
        if line.startswith("/") and word == "/back":
            self._filling.back()
            return Reply(Act.GO_ON, [self.prompt])
        if self.complete:
            return Reply(Act.SEND, []) if word.lower() == "yes" else Reply(Act.GO_ON, [self.prompt])
        try:
            self._filling.enter(line)
        except FieldError as e:
            return Reply(Act.GO_ON, [str(e), self.prompt])
        if not self.complete:
            return Reply(Act.GO_ON, [self.prompt])
        return Reply(Act.GO_ON, [*filled_lines(self._filling), self.prompt])
