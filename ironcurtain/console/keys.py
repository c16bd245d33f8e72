"""The effects of keys and commands on the console's state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from msgspec.structs import replace

from ironcurtain.console import filling
from ironcurtain.console.filling import Step
from ironcurtain.console.state import REFRESH, ConsoleState, Question, Section, Send, ShownEscalation, key_of
from ironcurtain.escalation.decision_keys import Offer, Part, ShownPart, Verdict, needed, untimely
from ironcurtain.escalation.model import Outcome
from ironcurtain.policy.reversal import is_lasting
from ironcurtain.view.commands import CONSOLE, Command, Message, Wrong, parse

PROMPT_LIMIT = 1000
"""Maximum length in characters of the input line."""


def press(state: ConsoleState, key: str, now: float, alone: bool = True) -> Step:
    """
    :param key: urwid's name: ``a``, ``enter``, ``page down``.
    :param now: seconds of a clock that does not go back.
    :param alone: whether one read from the terminal gave nothing else.
    """
    if state.prompt is None and state.question is not None:
        return _confirming(state, state.question, key, now, alone)
    state.keys.strike(now)
    if state.prompt is not None and state.dialogue is not None:
        return filling.type_value(state, state.dialogue, state.prompt, key)
    if state.prompt is not None:
        return _typing(state, state.prompt, key, now)
    if key in _SCROLLING:
        return _SCROLLING[key](state), ()
    if key in ("q", "ctrl c", "ctrl d"):
        return state, (Command("quit"),)
    if state.help:
        return replace(state, help=False, scroll=0), ()
    if key == "enter" and state.session is not None and not state.aside and not state.opened:
        return replace(state, opened=True, scroll=0), (REFRESH,)
    if key == "t" and state.opened and state.attaches:
        return state, (Command("attach", state.followed),)
    if key in _LINES and (key != "m" or state.opened):
        chosen = state.number(Section.SESSIONS)
        return replace(state, prompt=_LINES[key], began=now, addressed=chosen, message=("", "")), ()
    if key in _PLAIN:
        return _PLAIN[key](replace(state, message=("", ""))), ()
    return state, ()


def paste(state: ConsoleState, key: str, now: float) -> ConsoleState:
    """:returns: the state after a key that was pasted: text for the input line if it is open, else nothing."""
    state.keys.strike(now)
    if state.prompt is None or len(key) != 1:
        return state
    if state.dialogue is not None:
        return filling.type_value(state, state.dialogue, state.prompt, key)[0]
    return replace(_typing(state, state.prompt, key, now)[0], began=-inf)


def enter(state: ConsoleState, line: str, now: float) -> Step:
    """Execute a line that was typed after a slash; a question that it withdrew comes back unless there is another."""
    new, effects = _execute(replace(state, withdrawn=None), line, now)
    sent = {effect.key for effect in effects if isinstance(effect, Send)}
    back = state.withdrawn
    if back is None or new.question is not None or new.section is not Section.WAITING or new.aside:
        return new, effects
    keys = tuple(key for key in back.keys if key not in sent)
    return _come_back(new, replace(back, keys=keys) if keys else None), effects


def _come_back(state: ConsoleState, question: Question | None) -> ConsoleState:
    """Ask again what was withdrawn."""
    if question is None:
        return state
    if not question.every:
        number = question.keys[0].number
        if not any(each.number == number for each in state.listed(Section.WAITING)):
            return state
        state = state.choose(Section.WAITING, number)
    return replace(state, question=question).ask_on()


def _execute(state: ConsoleState, line: str, now: float) -> Step:
    match parse(line, CONSOLE):
        case Command("approve" | "deny" as word, option="all"):
            return _ask_all(state, _OUTCOMES[word]), ()
        case Command("approve" | "answer" | "deny" as word, int(number), option):
            return _decide(state, _OUTCOMES[word], number, option == "keep", now)
        case Command("permissions"):
            return replace(state, permitted=True, help=False, scroll=0), (REFRESH,)
        case Command("revoke" | "quit") as wanted:
            return state, (wanted,)
        case Command("start") as start:
            return state.with_message("starting a session ..."), (start,)
        case Command("message", text=text):
            # It is for the session that was chosen when its line was begun, whatever is chosen by now.
            number, typed = state.addressed, "" if state.began == -inf else text
            if any(each.number == number and each.state != "closed" for each in state.sessions):
                return state.with_message(f"sent to session {number}"), (Message(text, typed, number),)
            why = f"session {number} has ended, and nothing was sent: Esc drops the line"
            return replace(state, prompt=line).with_message(why if number else "choose a session first", "warn"), ()
        case Command("stop", session) as stop:
            return state.with_message(f"ending session {session} ..."), (stop,)
        case Command("withdraw") as withdraw if state.addressed:
            return state, (replace(withdraw, session=state.addressed),)
        case Command("withdraw"):
            return state.with_message("choose a session first", "warn"), ()
        case Command("sessions" | "escalations" | "history" as word):
            return state.go(_LISTS[word]), ()
        case Command("filter", text=text):
            return state.narrow(text), ()
        case Wrong(why):
            return state.with_message(why, "warn"), ()
        case _:
            return replace(state, help=True, scroll=0), ()


def _typing(state: ConsoleState, text: str, key: str, now: float) -> Step:
    if key == "enter":
        return enter(replace(state, prompt=None, message=("", "")), text, now)
    if key in ("esc", "ctrl c"):
        return _closed(state), ()
    text = filling.typed(text, key, PROMPT_LIMIT) or ("/" if key in ("ctrl u", "ctrl w") else "")
    return (replace(state, prompt=text) if text else _closed(state)), ()


def _closed(state: ConsoleState) -> ConsoleState:
    """The input line is dropped."""
    return _come_back(replace(state, prompt=None, withdrawn=None), state.withdrawn)


def _confirming(state: ConsoleState, question: Question, key: str, now: float, alone: bool) -> Step:
    approves = question.outcome is not Outcome.DENIED
    must = [part for each in question.keys for part in needed(*each, question.outcome)] if approves else []
    offer = Offer(question, {"y": must}, views=("/", *_SCROLLING, *_CANCELLING))
    match verdict := state.keys.press(key, offer, now, alone):
        case Verdict.ACTS if key in _SCROLLING:
            return _SCROLLING[key](state), ()
        case Verdict.ACTS if key == "/" and state.dialogue is None:
            asked = replace(state, question=None, withdrawn=question, message=("", ""))
            return replace(asked, prompt="/", began=now, addressed=state.number(Section.SESSIONS)), ()
        case Verdict.ACTS:
            return replace(state, question=None, dialogue=None).with_message("nothing was decided"), ()
        case Verdict.EARLY | Verdict.CROWDED:
            return state.with_message(untimely(verdict, key), "warn"), ()
        case Verdict.DECIDES if not approves or question.every or question.keys == (state.shown.whole,):
            values = None if state.dialogue is None else state.dialogue.values
            decided = replace(state, question=None, dialogue=None, message=("", ""))
            return decided, _sent(state, question, values)
        case Verdict.DECIDES | Verdict.UNSEEN:
            unread = _unread(state, question.keys[0])
            return replace(state, question=None, dialogue=None).with_message(unread, "warn"), ()
        case _:
            return state, ()


def _unread(state: ConsoleState, key: ShownEscalation) -> str:
    """:returns: what the person has to do before the call can be approved."""
    if state.shown.whole != key:
        return "the screen is too small to show the call, so it cannot be approved here"
    if not state.shown.complete:
        look = f"'ironcurtain escalations show {key.number}'"
        return f"{key.number} is too long to be shown here: {look} shows all of it, and how to approve it then"
    return f"{key.number} was not shown whole: read it with PgDn from begin to end first"


def _ask(state: ConsoleState, outcome: Outcome, keep: bool = False) -> ConsoleState:
    chosen = state.escalation
    if chosen is None or chosen not in state.listed(Section.WAITING):
        return state.with_message("no call waits for a decision")
    asked, key = state.go(Section.WAITING), key_of(chosen)
    if outcome is Outcome.APPROVED and state.shown.whole == key and not state.was_read(key):
        return asked.with_message(_unread(state, key), "warn")
    if outcome is Outcome.APPROVED and chosen.form is not None:
        return filling.begin(asked, key, chosen.form)
    if keep and not chosen.scope:
        return asked.with_message(f"the approval of {chosen.number} cannot be kept: it is for this call only", "warn")
    return replace(asked, question=Question(outcome, (key,), keep=keep), message=("", ""))


def _ask_all(state: ConsoleState, outcome: Outcome) -> ConsoleState:
    listed = [e for e in state.pending if e in state.listed(Section.WAITING)]
    if not listed:
        return state.with_message("no call waits for a decision")
    keys, note = tuple(map(key_of, listed)), ""
    if outcome is Outcome.APPROVED:
        read = [e for e in listed if state.was_read(key_of(e)) and e.form is None]
        alone = [str(e.number) for e in read if is_lasting(e.undo)]
        keys = tuple(key_of(e) for e in read if not is_lasting(e.undo))
        note = f"cannot be undone, so approve it by itself: {', '.join(alone)}" if alone else ""
        if not keys:
            return state.with_message(note or "none of them was shown to its end: read each one, then approve", "warn")
    asked = replace(state.go(Section.WAITING), question=Question(outcome, keys, every=True))
    return asked.with_message(note, "warn")


def _decide(state: ConsoleState, outcome: Outcome, number: int, keep: bool, now: float) -> Step:
    found = next((e for e in state.pending if e.number == number), None)
    if found is None:
        return state.with_message(state.too_late(number), "warn"), ()
    key = key_of(found)
    is_there = key in state.shown.rows if outcome is Outcome.DENIED else state.shown.whole == key
    typed = state.keys.word(needed(*key, outcome), state.began, now)
    if is_there and (outcome is Outcome.DENIED or found.form is None) and not keep and typed is Verdict.DECIDES:
        return state, _sent(state, Question(outcome, (key,)))
    visible = state if found in state.listed(Section.WAITING) else state.narrow("")
    return _ask(visible.choose(Section.WAITING, number), outcome, keep), ()


def _sent(state: ConsoleState, asked: Question, content: Mapping[str, Any] | None = None) -> tuple[Send, ...]:
    """:returns: a decision that was made, on each of its calls."""
    calls = {key: state.keys.calls(ShownPart(*key, Part.CALL)) for key in asked.keys}
    return tuple(Send(asked.outcome, key, asked.keep, calls[key], content) for key in asked.keys)


def _next(state: ConsoleState, step: int) -> ConsoleState:
    sections = list(Section)
    return state.go(sections[(sections.index(state.section) + step) % len(sections)])


_SCROLLING: Mapping[str, Callable[[ConsoleState], ConsoleState]] = {
    **dict.fromkeys(("page down", " "), lambda state: state.roll(max(state.shown.page - 1, 1))),
    "page up": lambda state: state.roll(-max(state.shown.page - 1, 1)),
    "g": lambda state: state.roll(-state.shown.end),
    "G": lambda state: state.roll(state.shown.end),
}

_CANCELLING = ("esc", "ctrl c")
_OUTCOMES = {"approve": Outcome.APPROVED, "answer": Outcome.APPROVED, "deny": Outcome.DENIED}
_LISTS = {"sessions": Section.SESSIONS, "escalations": Section.WAITING, "history": Section.HISTORY}
_LINES = {"/": "/", "f": "/filter ", "m": "/message "}

_PLAIN: Mapping[str, Callable[[ConsoleState], ConsoleState]] = {
    "a": lambda state: _ask(state, Outcome.APPROVED),
    "A": lambda state: _ask(state, Outcome.APPROVED, keep=True),
    "d": lambda state: _ask(state, Outcome.DENIED),
    **dict.fromkeys(("up", "k"), lambda state: state.move(-1)),
    **dict.fromkeys(("down", "j"), lambda state: state.move(1)),
    "home": lambda state: state.move(-len(state.pending) - len(state.sessions) - len(state.history)),
    "end": lambda state: state.move(len(state.pending) + len(state.sessions) + len(state.history)),
    "tab": lambda state: _next(state, 1),
    "shift tab": lambda state: _next(state, -1),
    "esc": lambda state: replace(state, permitted=False, opened=state.opened and state.permitted, scroll=0),
    **dict.fromkeys("?h", lambda state: replace(state, help=True, scroll=0)),
}
