"""What keys mean in the agent mode: actions for the agent, and requests to whoever owns the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ironcurtain.shell.messages import Action, Approval, Instruct, Interrupt, Kill, ProposedStep, Steer
from ironcurtain.shell_screen.input_line import InputLine
from ironcurtain.shell_screen.keymap import Key, KeyReader
from ironcurtain.shell_screen.panel import Panel
from ironcurtain.shell_screen.question import Inspection, Question
from ironcurtain.terminal.keys import INTERRUPT, ForwardedInput, Keys

KILL_SECONDS = 1.0
"""How soon a second Ctrl-C must come to end everything."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """The person wants the shell back; the agent's question stays open."""


@dataclass(frozen=True, slots=True)
class EditRequested:
    """The person wants to change a command in an editor; what comes of it is an ``Edit``."""

    plan_id: str
    step: ProposedStep


@dataclass(frozen=True, slots=True)
class ForCommand:
    """What was typed is for the command that runs."""

    data: bytes


Local = Suspend | EditRequested | ForCommand
"""What is asked of whoever owns the terminal."""

_DECISIONS: dict[str, Literal["allow", "allow_session", "skip", "deny"]] = {
    "a": "allow",
    "y": "allow",
    "A": "allow_session",
    "S": "allow_session",
    "x": "skip",
    "d": "deny",
}
_FOR_PLAN = frozenset("aysdq")
_FOR_STEP = frozenset("ayASxdq")
_MOVES = {"up": -1, "k": -1, "ctrl-p": -1, "down": 1, "j": 1, "ctrl-n": 1}
_PAGES = {" ": 1, "page-down": 1, "f": 1, "page-up": -1, "b": -1}


class Keyboard:
    """
    Turns what is read from the terminal into actions.

    :param panel: whose question is answered.
    """

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self._reader = KeyReader()
        self._reserved = Keys((INTERRUPT,))
        self._interrupted_at: float | None = None

    @property
    def due(self) -> float | None:
        """When :meth:`tick` is to be called; ``None`` if it need not be."""
        return self._reader.due

    def typed(self, data: bytes, now: float) -> list[Action | Local]:
        """
        Take what one read from the terminal gave. While a command runs, all of it is for the command but Ctrl-C.

        :param now: in seconds of a clock that does not go back.
        """
        if self._panel.running:
            return self._while_running(data, now)
        return self._all_pressed(self._reader.feed(data, now), now)

    def tick(self, now: float) -> list[Action | Local]:
        """Time has passed: Esc was pressed, if nothing followed it."""
        return self._all_pressed(self._reader.tick(now), now)

    def _while_running(self, data: bytes, now: float) -> list[Action | Local]:
        self._reader.feed(data, now)  # a paste may begin now and end when the command has
        self._reader.forget()
        return [
            ForCommand(each.data) if isinstance(each, ForwardedInput) else self._interrupt(now)
            for each in self._reserved.feed(data)
        ]

    def _all_pressed(self, keys: list[Key], now: float) -> list[Action | Local]:
        done: list[Action | Local] = []
        for key in keys:
            done += self._pressed(key, now)
            if done and isinstance(done[-1], Suspend):
                break  # what follows was typed before the shell was back
        return done

    def _interrupt(self, now: float) -> Action:
        again = self._interrupted_at is not None and now - self._interrupted_at < KILL_SECONDS
        self._interrupted_at = now
        return Kill() if again else Interrupt()

    def _pressed(self, key: Key, now: float) -> list[Action | Local]:
        panel, panel.hint = self._panel, ""
        if key.name == "ctrl-c":
            panel.input = None
            if panel.working:
                panel.close_question("stopping", now)
                panel.hint = "Ctrl-C again within a second ends everything at once"
            return [self._interrupt(now)]
        if key.name == "ctrl-z" or (key.name == "escape" and not (panel.input or panel.inspection)):
            return [Suspend()]
        if panel.input is not None:
            return self._edit_line(panel.input, key, now)
        if panel.inspection is not None:
            self._read(panel.inspection, key)
            return []
        if key.name == "#":
            panel.input = InputLine("# ")
        elif key.name == "paste":
            panel.hint = "pasted text presses no keys: # begins a line for the agent"
        elif panel.question is not None:
            return self._answer(panel.question, key, now)
        return []

    def _edit_line(self, line: InputLine, key: Key, now: float) -> list[Action | Local]:
        panel = self._panel
        if key.name not in ("enter", "escape"):
            line.press(key)
            return []
        panel.input = None
        text = line.text.strip().lstrip("#").strip()
        if key.name == "escape" or not text:
            return []
        if not panel.working:
            return [Instruct(text=text)]
        panel.record_words(text)
        panel.close_question("thinking", now)
        return [Steer(plan_id=panel.plan.id, context=text)]

    def _read(self, inspection: Inspection, key: Key) -> None:
        if key.name in _MOVES:
            inspection.scroll(_MOVES[key.name])
        elif key.name in _PAGES:
            inspection.scroll(_PAGES[key.name] * inspection.room)
        elif key.name in ("enter", "escape", "q", "left"):
            self._panel.inspection = None
        elif key.name in _DECISIONS and inspection.is_read:
            self._panel.inspection = None
            self._panel.hint = f"read to its end: press {key.name} again if that is your decision"
        elif key.name in _DECISIONS:
            self._panel.hint = "Space shows the rest of it"

    def _answer(self, question: Question, key: Key, now: float) -> list[Action | Local]:
        panel, step = self._panel, self._panel.chosen
        if key.name in (_FOR_PLAN if question.request is None else _FOR_STEP):
            return self._decide(question, key, now)
        if question.drawn_at is None or step is None:
            return []
        if key.name == "e":
            return [EditRequested(question.plan_id, step)]
        if key.name == ("n" if question.request is None else "c"):
            panel.input = InputLine("note: " if question.request is None else "context: ")
        elif key.name == "enter":
            panel.inspection = Inspection(step)
        elif question.request is None:
            self._move(key)
        return []

    def _move(self, key: Key) -> None:
        panel = self._panel
        numbers = [step.number for step in panel.plan.waiting]
        at = numbers.index(panel.selected)
        if key.name in _MOVES:
            at += _MOVES[key.name]
        elif key.name in _PAGES:
            at = panel.last + 1 if _PAGES[key.name] > 0 else panel.first - 1
            panel.first = at if _PAGES[key.name] > 0 else panel.first
        panel.selected = numbers[max(min(at, len(numbers) - 1), 0)]

    def _decide(self, question: Question, key: Key, now: float) -> list[Action | Local]:
        panel = self._panel
        if not question.counts(now):
            panel.hint = "that key came before the question was shown: press it again"
            return []
        if not key.alone:
            panel.hint = "several keys came at once, which decide nothing: press one"
            return []
        if key.name == "q":
            panel.close_question("stopping", now)
            return [self._interrupt(now)]
        if question.request is None:
            return self._decide_plan(question, key.name, now)
        return self._decide_step(question, key.name, now)

    def _decide_plan(self, question: Question, name: str, now: float) -> list[Action | Local]:
        panel = self._panel
        if name in ("a", "y") and (missing := panel.seen.missing(panel.plan.waiting)):
            self._show_missing(missing)
            return []
        if name == "d":
            panel.record_answer(f"plan of {len(panel.plan.waiting)} steps denied")
        else:
            panel.record_plan()
        panel.close_question("working", now)
        return [Approval(plan_id=question.plan_id, decision="step" if name == "s" else _DECISIONS[name])]

    def _show_missing(self, missing: list[ProposedStep]) -> None:
        panel, step = self._panel, missing[0]
        panel.selected = step.number
        if step.number in panel.cut:
            self._inspect_first(step)
            return
        panel.first = panel.plan.waiting.index(step)
        steps = "1 step was" if len(missing) == 1 else f"{len(missing)} steps were"
        panel.hint = f"{steps} not shown yet, from {step.number} on: read, then press a again"

    def _inspect_first(self, step: ProposedStep) -> None:
        self._panel.inspection = Inspection(step)
        self._panel.hint = f"step {step.number} was not shown whole: read it to its end, then press a again"

    def _decide_step(self, question: Question, name: str, now: float) -> list[Action | Local]:
        panel, request = self._panel, question.request
        assert request is not None
        decision = _DECISIONS[name]
        if decision == "allow_session" and not request.scope:
            panel.hint = "this can be allowed only once: press a"
            return []
        unseen = panel.seen.missing([request.step]) or (decision == "allow_session" and not question.scope_shown)
        if decision in ("allow", "allow_session") and unseen:
            self._inspect_first(request.step)
            return []
        panel.close_question("working", now)
        return [Approval(plan_id=request.plan_id, decision=decision, step=request.step.number, digest=request.digest)]
