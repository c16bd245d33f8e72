"""What keys mean in the agent mode: actions for the agent, and requests to whoever owns the terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from ironcurtain.escalation.decision_keys import Offer, Verdict, untimely
from ironcurtain.shell.messages import Action, Approval, Instruct, Interrupt, Kill, MoreTokens, Note, ProposedStep
from ironcurtain.shell.reversal import needs_own_decision
from ironcurtain.shell_screen.input_line import InputLine, without_meaning
from ironcurtain.shell_screen.panel import Panel
from ironcurtain.shell_screen.question import MOVES, NOTES, PAGES, Inspection, Question, shown_step
from ironcurtain.terminal.key_reader import Key, KeyReader
from ironcurtain.terminal.keys import INTERRUPT, ForwardedInput, Keys
from ironcurtain.text.quantities import counted

KILL_SECONDS = 1.0
"""How soon a second Ctrl-C must come to end everything."""

UNTAKEN_LIMIT = 4096
"""Most bytes that are kept of what was not taken."""

VIEWS = frozenset(("enter", "escape", "q", "left", *MOVES, *PAGES))
"""Keys that only show something else. Several may come in one read; beside other keys they are part of a text."""


class Suspend(msgspec.Struct, frozen=True):
    """
    The person wants the shell back; the agent's question stays open.

    :param rest: what came with that key, for the shell.
    """

    rest: bytes = b""


class EditRequested(msgspec.Struct, frozen=True):
    """The person wants to change a command in an editor; what comes of it is an ``Edit``."""

    plan_id: str
    step: ProposedStep


Local = Suspend | EditRequested | ForwardedInput
"""What is asked of whoever owns the terminal; input is for the command that runs."""

Decision = Literal["allow", "allow_undoable", "allow_session", "allow_category", "step", "skip", "deny"]

_DECISIONS: dict[str, Decision] = {
    "a": "allow",
    "y": "allow",
    "A": "allow_session",
    "S": "allow_session",
    "C": "allow_category",
    "x": "skip",
    "d": "deny",
}
_LINES = {"n": "note: ", "c": "note: ", "#": "# "}
_PASTED = "pasted text presses no keys: # begins a line for the agent"
_TOO_LATE = "a command runs already: Ctrl-C interrupts it"
_READING = frozenset((*VIEWS, *_DECISIONS))


class Keyboard:
    """
    Turns what is read from the terminal into actions. What is not taken is said: nothing vanishes.

    :param panel: whose question is answered.
    """

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self._reader = KeyReader()
        self._reserved = Keys((INTERRUPT,))
        self._interrupted_at: float | None = None
        self._pasting = self._mixed = False
        self._untaken = bytearray()

    @property
    def due(self) -> float | None:
        """When :meth:`tick` is to be called; ``None`` if it need not be."""
        return self._reader.due

    def typed(self, data: bytes, now: float) -> list[Action | Local]:
        """
        Take what one read from the terminal gave. While a command runs, all of it is for the command but Ctrl-C, and a
        paste that began before.

        :param now: in seconds of a clock that does not go back.
        """
        if self._panel.running:
            return self._while_running(data, now)
        done = self._all_pressed(self._reader.feed(data, now), now)
        self._pasting = self._reader.pasting
        return done

    def tick(self, now: float) -> list[Action | Local]:
        """Time has passed: Esc was pressed, if nothing followed it."""
        keys = self._reader.tick(now)
        if keys and self._panel.running:
            self._panel.hint = _TOO_LATE
            return []
        return self._all_pressed(keys, now)

    def give_up(self) -> tuple[bytes, bytes]:
        """
        The keys are somebody else's from now on.

        :returns: what was not taken since the last time, and what is no key yet: the rest of it is still to come.
        """
        left = bytes(self._untaken), self._reader.unread
        self._reader, self._pasting = KeyReader(), False
        self._untaken.clear()
        return left

    def untake(self, data: bytes) -> None:
        """:param data: something that was typed and is not taken, although no question is open that stays."""
        self._untaken += data[: UNTAKEN_LIMIT - len(self._untaken)]

    def _while_running(self, data: bytes, now: float) -> list[Action | Local]:
        self._panel.keys.strike(now)
        if self._reader.due is not None:
            self._panel.hint = _TOO_LATE
        keys = deque(self._reader.feed(data, now))  # a paste may begin now and end when the command has
        if self._pasting:
            while keys and self._pasting:
                self._pasting = keys[0].name != "paste"
                self._pressed(keys.popleft(), now)
            data = b"".join(key.data for key in keys)
            data += b"" if self._pasting else self._reader.unread
        if not self._reader.pasting:
            self._reader = KeyReader()
        return [
            each if isinstance(each, ForwardedInput) else self._interrupt(now)
            for each in (self._reserved.feed(data) if data else ())
        ]

    def _all_pressed(self, keys: Sequence[Key], now: float) -> list[Action | Local]:
        done: list[Action | Local] = []
        waiting, hint = deque(keys), ""
        self._mixed = any(key.name and key.name not in VIEWS for key in keys)
        while waiting:
            key = waiting.popleft()
            if self._panel.input is None and len(key.parts) > 1:
                waiting.extendleft(reversed(key.parts))
                continue
            if key.name:
                done += self._pressed(key, now)
            if done and isinstance(done[-1], Suspend):  # what follows is for the shell
                rest = b"".join(each.data for each in waiting) + self._reader.unread
                self._reader = KeyReader()
                return [*done[:-1], Suspend(rest)]
            hint = self._panel.hint or hint
        self._panel.hint = hint or self._panel.hint
        return done

    def _interrupt(self, now: float) -> Action:
        again = self._interrupted_at is not None and now - self._interrupted_at < KILL_SECONDS
        self._interrupted_at = now
        return Kill() if again else Interrupt()

    def _pressed(self, key: Key, now: float) -> list[Action | Local]:
        panel, panel.hint = self._panel, ""
        if key.name == "ctrl-c":
            panel.keys.strike(now, text=False)
            panel.input = None
            if panel.activity.working:
                panel.close_question("stopping", now)
                panel.hint = "Ctrl-C again within a second ends everything at once"
            return [self._interrupt(now)]
        if key.name == "ctrl-z" or (key.name == "escape" and not (panel.input or panel.inspection)):
            panel.keys.strike(now, text=False)
            return [Suspend()]
        if panel.input is not None:
            panel.keys.strike(now)
            return self._edit_line(panel.input, key, now)
        if key.name in ("paste", "unknown"):
            panel.keys.strike(now)
            if panel.question is None:
                self.untake(key.data)
            panel.hint = _PASTED if key.name == "paste" else without_meaning(key)
        elif panel.question is not None:
            return self._answer(panel.question, key, now)
        elif key.name == "#":
            panel.input = InputLine("# ")
        else:
            panel.keys.strike(now)
            self.untake(key.data)
            panel.hint = "not taken while the agent works: # begins a note to it, Esc goes to the shell"
        return []

    def _edit_line(self, line: InputLine, key: Key, now: float) -> list[Action | Local]:
        panel = self._panel
        if key.name not in ("enter", "escape"):
            panel.hint = line.press(key)
            return []
        panel.input = None
        text = line.text.strip().lstrip("#").strip()
        if key.name == "escape" or not text:
            return []
        if not panel.activity.working:
            return [Instruct(text=text)]
        panel.record.words(text)
        panel.close_question("thinking", now)
        return [Note(text=text)]

    def _answer(self, question: Question, key: Key, now: float) -> list[Action | Local]:
        """A key at a question, or at a step of it that is read in full."""
        panel, inspection = self._panel, self._panel.inspection
        offer = panel.offer if inspection is None else Offer(question, notes=NOTES, views=_READING)
        # A line after # is often written at once by a program that types for its user.
        verdict = panel.keys.press(key.name, offer, now, key.alone or key.name == "#")
        if verdict is Verdict.ACTS and self._mixed and not (key.alone or key.name in NOTES):
            verdict = Verdict.CROWDED  # it is part of a text
        match verdict:
            case Verdict.EARLY | Verdict.CROWDED:
                panel.hint = untimely(verdict, key.name)
            case Verdict.ACTS if key.name in NOTES:
                panel.input = InputLine(_LINES[key.name])
            case Verdict.ACTS if inspection is not None:
                self._read(inspection, key)
            case Verdict.ACTS if key.name == "enter":
                panel.inspection = None if panel.chosen is None else Inspection(panel.chosen)
            case Verdict.ACTS:
                self._move(key)
            case Verdict.UNSEEN:
                self._show_missing(question)
            case Verdict.DECIDES:
                return self._decide(question, key.name, now)
            case _ if question.request is not None and key.name in ("A", "S", "C") and inspection is None:
                panel.hint = "this can be allowed only once: press a"
            case _:
                panel.hint = without_meaning(key)
        return []

    def _read(self, inspection: Inspection, key: Key) -> None:
        if key.name in MOVES:
            inspection.scroll(MOVES[key.name])
        elif key.name in PAGES:
            inspection.scroll(PAGES[key.name] * inspection.page.rows)
        elif key.name not in _DECISIONS:
            self._panel.inspection = None
        elif not self._panel.keys.missing([shown_step(inspection.step)]):
            self._panel.inspection = None
            self._panel.hint = f"read to its end: press {key.name} again if that is your decision"
        else:
            self._panel.hint = "Space shows the rest of it"

    def _move(self, key: Key) -> None:
        panel = self._panel
        numbers = [step.number for step in panel.plan.waiting]
        at = numbers.index(panel.selected)
        if key.name in MOVES:
            at += MOVES[key.name]
        else:
            at = panel.frame.last + 1 if PAGES[key.name] > 0 else panel.frame.first - 1
            panel.frame = replace(panel.frame, first=at) if PAGES[key.name] > 0 else panel.frame
        panel.selected = numbers[max(min(at, len(numbers) - 1), 0)]

    def _decide(self, question: Question, name: str, now: float) -> list[Action | Local]:
        panel, step = self._panel, self._panel.chosen
        if name == "e":
            return [] if step is None else [EditRequested(question.plan_id, step)]
        if name == "q":
            panel.close_question("stopping", now)
            return [self._interrupt(now)]
        if question.budget is not None:
            panel.record.answer("more tokens allowed" if name in "ay" else "no more tokens allowed")
            panel.close_question("thinking", now)
            return [MoreTokens(allow=name in "ay")]
        if question.request is None:
            return self._decide_plan(question, name, now)
        panel.close_question("working", now)
        request = question.request
        number, digest = request.step.number, request.digest
        return [Approval(plan_id=request.plan_id, decision=_DECISIONS[name], step=number, digest=digest)]

    def _decide_plan(self, question: Question, name: str, now: float) -> list[Action | Local]:
        panel, waiting = self._panel, self._panel.plan.waiting
        decision: Decision = "step" if name == "s" else _DECISIONS[name]
        if decision == "allow" and len(waiting) > 1 and any(map(needs_own_decision, waiting)):
            decision = "allow_undoable"
        if name == "d":
            panel.record.answer(f"plan of {counted(len(waiting), 'step')} denied")
        else:
            panel.record.plan(panel.plan)
        panel.close_question("working", now)
        return [Approval(plan_id=question.plan_id, decision=decision)]

    def _show_missing(self, question: Question) -> None:
        """What would be allowed was not shown whole: show it."""
        panel = self._panel
        if question.request is not None:
            self._inspect_first(question.request.step)
            return
        missing = [step for step in panel.plan.waiting if panel.keys.missing([shown_step(step)])]
        step = missing[0]
        panel.selected, at = step.number, panel.plan.waiting.index(step)
        if panel.frame.first <= at <= panel.frame.last:  # a part of it is on the screen
            self._inspect_first(step)
            return
        panel.frame = replace(panel.frame, first=at)
        steps = counted(len(missing), "step was", "steps were")
        panel.hint = f"{steps} not shown yet, from {step.number} on: read, then press a again"

    def _inspect_first(self, step: ProposedStep) -> None:
        self._panel.inspection = Inspection(step)
        self._panel.hint = f"step {step.number} was not shown whole: read it to its end, then press a again"
