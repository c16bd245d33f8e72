"""Carry out what a viewer of the console wants, and say what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from twisted.internet.defer import Deferred

from ironcurtain.console.commands import Revoke, Section, Start, Stop
from ironcurtain.console.state import ConsoleState, Send, Tell
from ironcurtain.errors import IronCurtainError
from ironcurtain.escalation.model import Outcome
from ironcurtain.home.user_paths import user_path
from ironcurtain.operations.home_source import ConsoleSource
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.model import SessionRequest
from ironcurtain.text.columns import Style
from ironcurtain.view.outcomes import outcome_of_all

Change = Callable[[ConsoleState], ConsoleState]


async def perform(source: ConsoleSource, action: Revoke | Start | Stop | Tell) -> Change:
    """:returns: how the state shows what came of it."""
    try:
        match action:
            case Revoke(number):
                revoked = await source.revoke(number)
                return _said(f"revoked: asked again about {revoked.scope}")
            case Start():
                workspace = Path(user_path(action.workspace)) if action.workspace else None
                info = await source.start(SessionRequest(action.agent, action.task, workspace))
                said = _said(f"session {info.number} has started: ironcurtain attach {info.number} joins it", "good")
                return lambda state: said(state.choose(Section.SESSIONS, info.number))
            case Stop(session):
                await source.stop(session)
                return _said(f"session {session} has ended")
            case Tell():
                await source.send(action.session, action.text, action.text if action.typed else "")
                return lambda state: state
    except IronCurtainError as e:
        return _said(str(e), "warn")


async def decide(source: ConsoleSource, sent: Sequence[Send]) -> Change:
    """
    Send decisions that were confirmed together.

    :returns: how the state shows the outcome of all of them.
    """
    deciding = [Deferred.fromCoroutine(_decide(source, each)) for each in sent]
    results = [await each for each in deciding]
    outcome, numbers = sent[0].outcome, [each.key.number for each in sent]
    return _said(*outcome_of_all(outcome, outcome in (Outcome.APPROVED, Outcome.ANSWERED), numbers, results))


async def _decide(source: ConsoleSource, send: Send) -> EscalationView | str:
    """:returns: the decided escalation, or the reason of the failure."""
    number, digest = send.key
    try:
        if send.outcome in (Outcome.ANSWERED, Outcome.CANCELLED):
            return await source.answer(number, send.content, digest)
        return await source.decide(number, send.outcome, digest, send.keep, send.calls)
    except IronCurtainError as e:
        return str(e)


def _said(text: str, style: Style = "dim") -> Change:
    return lambda state: state.with_message(text, style)
