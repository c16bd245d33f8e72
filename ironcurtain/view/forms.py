"""Forms as lines, safe for a terminal, and what each line of a person who fills one in means, for every front end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironcurtain.escalation.form_patterns import matcher
from ironcurtain.escalation.form_values import Field, FieldError
from ironcurtain.escalation.forms import Filling, Form
from ironcurtain.escalation.model import Outcome
from ironcurtain.text.columns import wrap
from ironcurtain.text.display import one_line, paragraphs
from ironcurtain.view.arguments import BRIEF, value_line

_MESSAGE, _INSIDE = "| ", "   "
"""What begins each row of a message, and of what belongs to a field."""

WARNING = "the server gets what you enter: no password, key or card number belongs here"

_KINDS = {"text": "text", "number": "a number", "integer": "a whole number", "boolean": "yes or no"}


def form_lines(form: Form) -> list[str]:
    """:returns: a complete form: its message, marked so that it imitates no line of ours, and its fields or address."""
    lines = [f"{_MESSAGE}{line}" for line in paragraphs(form.message).split("\n")] if form.message else []
    if form.url:
        address = [f"host: {one_line(form.host)}", f"address: {one_line(form.url)}"]
        return [*lines, *address, "it is not opened for you: open it in a browser yourself if you know this host"]
    for number, asked in enumerate(form.fields, 1):
        name = one_line(asked.name)
        label = name if not asked.title or asked.title == asked.name else f"{one_line(asked.title)} ({name})"
        lines += [f"{number}. {label}: {field_words(asked)}", *_details(asked)]
    return [*lines, WARNING] if form.fields else lines


def form_rows(form: Form, width: int) -> Iterator[str]:
    """
    :param width: in columns.
    :returns: the lines of a complete form, broken into rows of which each begins as its line does.
    """
    for line in form_lines(form):
        mark = next((each for each in (_MESSAGE, _INSIDE) if line.startswith(each)), "")
        for part in wrap(line.removeprefix(mark), width - len(mark)):
            yield f"{mark}{part}"


def field_words(asked: Field, choices: str = "the choices") -> str:
    """
    :param choices: what there is to choose.
    :returns: what fits a field, and whether it is required.
    """
    kinds = {**_KINDS, "choice": f"one of {choices}", "choices": f"any of {choices}, with commas between them"}
    words = kinds[asked.kind] + _bounds(asked)
    if asked.format:
        words += f", {one_line(asked.format, BRIEF)}"
    if asked.pattern:
        unchecked = "" if matcher(asked.pattern) is not None else " (which only the server checks)"
        words += f", like {one_line(asked.pattern)}{unchecked}"
    words += ", required" if asked.required and asked.default is None else ""
    return words + (f", by default {value_words(asked.default)}" if asked.default is not None else "")


def sending_words(form: Form) -> str:
    """:returns: what is done by sending a form, before its number and name."""
    if form.url:
        return "Tell the server that you opened the address of"
    return "Send to the server what you entered for" if form.fields else "Tell the server that you agree to"


def value_words(value: Any) -> str:
    """:returns: a value in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(value_words, value)) or "none" if isinstance(value, list) else value_line(value)


def _details(asked: Field) -> Iterator[str]:
    if asked.description:
        for line in paragraphs(asked.description).split("\n"):
            yield f"{_INSIDE}{line}"
    for number, choice in enumerate(asked.choices, 1):
        title = "" if choice.title in ("", choice.value) else f": {one_line(choice.title)}"
        yield f"{_INSIDE}{number}) {one_line(choice.value)}{title}"


def _bounds(asked: Field) -> str:
    unit = {"text": " characters", "choices": " of them"}.get(asked.kind, "")
    if asked.least is not None and asked.most is not None:
        return f", {asked.least:g} to {asked.most:g}{unit}"
    if asked.least is not None:
        return f", at least {asked.least:g}{unit}"
    return "" if asked.most is None else f", at most {asked.most:g}{unit}"


OTHERWISE = "/decline or /cancel tell the server; /later"
"""What can be entered in place of a confirmation."""

HELP = f"an empty line is the default, or nothing; /back: the field before; {OTHERWISE}"
"""What can be entered in place of a value."""

LEFT = "nothing was sent: it waits on"
"""What is said of a form that is left."""

CHOICES = 60
"""Maximum number of characters of a field's choices when it is asked for; the form has all of them."""


_COMMANDS = {"/decline": Outcome.DENIED, "/cancel": Outcome.CANCELLED, "/later": None}


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
        filling, form = self._filling, self._filling.form
        if (asked := filling.current) is None:
            agreed = "to send this" if form.fields else "to agree"
            return f"type yes {'once you have opened it' if form.url else agreed}"
        words = field_words(asked, one_line(", ".join(choice.value for choice in asked.choices), CHOICES))
        name = one_line(asked.title or asked.name, BRIEF)
        return f"{filling.at + 1} of {len(form.fields)}: {name} ({words})"

    def begin(self) -> list[str]:
        """:returns: the lines before the first field."""
        return [OTHERWISE if self.complete else HELP, self.prompt]

    def enter(self, line: str) -> list[str] | Outcome | None:
        """
        Take a line: a value, a command, or the confirmation.

        :returns: what is to be shown next, escaped; or the form's outcome; ``None``: it is left, and waits on.
        """
        word = line.strip()
        if line.startswith("/") and word in _COMMANDS:
            return _COMMANDS[word]
        if line.startswith("/") and word == "/back":
            self._filling.back()
            return [self.prompt]
        if self.complete:
            return Outcome.ANSWERED if word.lower() == "yes" else [self.prompt]
        try:
            self._filling.enter(line)
        except FieldError as e:
            return [str(e), self.prompt]
        if not self.complete:
            return [self.prompt]
        values = [f"{one_line(name, BRIEF)} = {value_words(value)}" for name, value in self.values.items()]
        return [*(values or ["no values"]), self.prompt]
