"""Filling in a form on the console's input line: each line is a value, and the last question is confirmed by a key."""

from __future__ import annotations

from msgspec.structs import replace

from ironcurtain.console.state import ConsoleState, Effect, Question, Send, ShownEscalation
from ironcurtain.escalation.forms import Form
from ironcurtain.escalation.model import Outcome
from ironcurtain.text.line_editing import edited
from ironcurtain.view.forms import LEFT, FormDialogue

LINE_LIMIT = 4000
"""Maximum length in characters of a value."""

Step = tuple[ConsoleState, tuple[Effect, ...]]
"""The new state, and the actions to perform."""


def begin(state: ConsoleState, key: ShownEscalation, form: Form) -> ConsoleState:
    """:returns: the state in which the chosen form is filled in, from its first field."""
    dialogue = FormDialogue(*key, form)
    return _go_on(replace(state, dialogue=dialogue), dialogue, [])


def type_value(state: ConsoleState, dialogue: FormDialogue, text: str, key: str) -> Step:
    """
    :param text: what stands in the input line.
    :param key: urwid's name of the key that is pressed.
    """
    if key in ("esc", "ctrl c"):
        return _leave(state), ()
    if key == "enter":
        return _enter(state, dialogue, text)
    return replace(state, prompt=typed(text, key, LINE_LIMIT)), ()


def typed(text: str, key: str, limit: int) -> str:
    """
    :param key: urwid's name.
    :param limit: most characters.
    :returns: the text of an input line after a key.
    """
    if len(key) == 1 and key.isprintable() and len(text) < limit:
        return text + key
    return (edited(text, "", key.replace(" ", "-")) or (text, ""))[0] if len(key) > 1 else text


def _enter(state: ConsoleState, dialogue: FormDialogue, text: str) -> Step:
    match dialogue.enter(text):
        case None:
            return _leave(state), ()
        case Outcome() as outcome:
            key = ShownEscalation(dialogue.number, dialogue.digest)
            return _leave(state).with_message(""), (Send(outcome, key),)
        case lines:
            return _go_on(state, dialogue, lines[:-1]), ()


def _go_on(state: ConsoleState, dialogue: FormDialogue, lines: list[str]) -> ConsoleState:
    if not dialogue.complete:
        return replace(state, prompt="").with_message("; ".join([*lines, dialogue.prompt]), "warn")
    key = ShownEscalation(dialogue.number, dialogue.digest)
    asked = replace(state, prompt=None, question=Question(Outcome.ANSWERED, (key,)))
    return asked.with_message("; ".join(lines), "warn")


def _leave(state: ConsoleState) -> ConsoleState:
    return replace(state, dialogue=None, prompt=None).with_message(LEFT)
