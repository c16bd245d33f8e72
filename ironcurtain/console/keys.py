"""The effects of keys and commands on the console's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ironcurtain.console import commands
from ironcurtain.console.commands import Section
from ironcurtain.console.state import (
    ConsoleState,
    Effect,
    End,
    Leave,
    Look,
    Question,
    Send,
    ShownEscalation,
    TakeBack,
    key_of,
)
from ironcurtain.escalation.model import Outcome

PROMPT_LIMIT = 200
"""Maximum length in characters of the input line."""

Step = tuple[ConsoleState, tuple[Effect, ...]]
"""The new state, and the actions to perform."""


def press(state: ConsoleState, key: str) -> Step:
    """:param key: urwid's name: ``a``, ``enter``, ``page down``."""
    if state.prompt is not None:
        return _typing(state, state.prompt, key)
    if key in _SCROLLING:
        return _SCROLLING[key](state), ()
    if state.question is not None:
        return _confirming(state, state.question, key)
    if key in ("q", "ctrl c", "ctrl d"):
        return state, (Leave(),)
    if state.help:
        return replace(state, help=False, scroll=0), ()
    if key in _PLAIN:
        return _PLAIN[key](replace(state, message=("", ""))), ()
    return state, ()


def enter(state: ConsoleState, line: str) -> Step:
    """Execute a line that was typed after a slash."""
    match commands.parse(line):
        case commands.Decide(outcome, number, keep):
            return _decide(state, outcome, number, keep)
        case commands.DecideAll(outcome):
            return _ask_all(state, outcome), ()
        case commands.Permissions():
            return replace(state, permitted=True, help=False, scroll=0), (Look(),)
        case commands.Revoke(number):
            return state, (TakeBack(number),)
        case commands.Start() as start:
            return state.with_message("starting a session ..."), (start,)
        case commands.Stop(session):
            return state.with_message(f"ending session {session} ..."), (End(session),)
        case commands.GoTo(section):
            return state.go(section), ()
        case commands.Filter(text):
            return state.narrow(text), ()
        case commands.Help():
            return replace(state, help=True, scroll=0), ()
        case commands.Quit():
            return state, (Leave(),)
        case commands.Wrong(why):
            return state.with_message(why, "warn"), ()


def _typing(state: ConsoleState, text: str, key: str) -> Step:
    if key == "enter":
        return enter(replace(state, prompt=None, message=("", "")), text)
    if key in ("esc", "ctrl c"):
        return replace(state, prompt=None), ()
    if key in ("backspace", "ctrl h"):
        text = text[:-1]
    elif key == "ctrl u":
        text = "/"
    elif key == "ctrl w":
        text = text.rstrip(" ").rpartition(" ")[0] or "/"
    elif len(key) == 1 and key.isprintable() and len(text) < PROMPT_LIMIT:
        text += key
    return replace(state, prompt=text or None), ()


def _confirming(state: ConsoleState, question: Question, key: str) -> Step:
    if key in ("n", "esc", "ctrl c", "q"):
        return replace(state, question=None).with_message("nothing was decided"), ()
    if key != "y" or state.shown.question != question:  # input from before the question does not answer it
        return state, ()
    if not _seen(state, question):
        return replace(state, question=None).with_message(_unread(state, question.keys[0]), "warn"), ()
    sent = tuple(Send(question.outcome, each, question.keep, state.read.get(each)) for each in question.keys)
    return replace(state, question=None, message=("", "")), sent


def _seen(state: ConsoleState, question: Question) -> bool:
    """
    :returns: whether the end of each text to approve was on the screen, and the text is still shown if there is only
        one.
    """
    if question.outcome is Outcome.DENIED:
        return True
    return state.read.keys() >= set(question.keys) and (question.every or question.keys == (state.shown.whole,))


def _unread(state: ConsoleState, key: ShownEscalation) -> str:
    """:returns: what the person has to do before the call can be approved."""
    if state.shown.whole != key:
        return "the screen is too small to show the call, so it cannot be approved here"
    if not state.shown.complete:
        look = f"'ironcurtain escalations show {key.number}'"
        return f"{key.number} is too long to be shown here: {look} shows all of it, and how to approve it then"
    return f"{key.number} continues below: read it to its end with PgDn, then approve it"


def _ask(state: ConsoleState, outcome: Outcome, keep: bool = False) -> ConsoleState:
    chosen = state.escalation
    if chosen is None or chosen not in state.listed(Section.WAITING):
        return state.with_message("no call waits for a decision")
    asked, key = state.go(Section.WAITING), key_of(chosen)
    if outcome is Outcome.APPROVED and state.shown.whole == key and key not in state.read:
        return asked.with_message(_unread(state, key), "warn")
    if keep and not chosen.scope:
        return asked.with_message(f"the approval of {chosen.number} cannot be kept: it is for this call only", "warn")
    return replace(asked, question=Question(outcome, (key,), keep=keep), message=("", ""))


def _ask_all(state: ConsoleState, outcome: Outcome) -> ConsoleState:
    keys = tuple(key_of(e) for e in state.pending if e in state.listed(Section.WAITING))
    if not keys:
        return state.with_message("no call waits for a decision")
    if outcome is Outcome.APPROVED and not (keys := tuple(key for key in keys if key in state.read)):
        return state.with_message("none of them was shown to its end: read each one, then approve", "warn")
    return replace(state.go(Section.WAITING), question=Question(outcome, keys, every=True))


def _decide(state: ConsoleState, outcome: Outcome, number: int, keep: bool) -> Step:
    found = next((e for e in state.pending if e.number == number), None)
    if found is None:
        return state.with_message(state.too_late(number), "warn"), ()
    key = key_of(found)
    seen = state.shown.whole == key and key in state.read
    if not keep and (seen or (outcome is Outcome.DENIED and key in state.shown.rows)):
        return state, (Send(outcome, key, calls=state.read.get(key)),)
    visible = state if found in state.listed(Section.WAITING) else state.narrow("")
    return _ask(visible.choose(Section.WAITING, number), outcome, keep), ()


def _next(state: ConsoleState, step: int) -> ConsoleState:
    sections = list(Section)
    return state.go(sections[(sections.index(state.section) + step) % len(sections)])


_SCROLLING: Mapping[str, Callable[[ConsoleState], ConsoleState]] = {
    "page down": lambda state: state.roll(max(state.shown.page - 1, 1)),
    "page up": lambda state: state.roll(-max(state.shown.page - 1, 1)),
    " ": lambda state: state.roll(max(state.shown.page - 1, 1)),
    "g": lambda state: state.roll(-state.shown.end),
    "G": lambda state: state.roll(state.shown.end),
}

_PLAIN: Mapping[str, Callable[[ConsoleState], ConsoleState]] = {
    "a": lambda state: _ask(state, Outcome.APPROVED),
    "A": lambda state: _ask(state, Outcome.APPROVED, keep=True),
    "d": lambda state: _ask(state, Outcome.DENIED),
    "up": lambda state: state.move(-1),
    "k": lambda state: state.move(-1),
    "down": lambda state: state.move(1),
    "j": lambda state: state.move(1),
    "home": lambda state: state.move(-len(state.pending) - len(state.sessions) - len(state.history)),
    "end": lambda state: state.move(len(state.pending) + len(state.sessions) + len(state.history)),
    "tab": lambda state: _next(state, 1),
    "shift tab": lambda state: _next(state, -1),
    "esc": lambda state: replace(state, permitted=False, scroll=0) if state.permitted else state,
    "f": lambda state: replace(state, prompt="/filter "),
    "/": lambda state: replace(state, prompt="/"),
    "?": lambda state: replace(state, help=True, scroll=0),
    "h": lambda state: replace(state, help=True, scroll=0),
}
