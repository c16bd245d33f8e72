"""Carry out what a viewer of the console wants, and say what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path

from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.console.keys import PROMPT_LIMIT
from ironcurtain.console.state import ConsoleState, Section, Send
from ironcurtain.errors import IronCurtainError, UsageError
from ironcurtain.escalation.model import Outcome
from ironcurtain.home.user_paths import user_path
from ironcurtain.operations.console_source import ConsoleSource
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.model import SessionRequest
from ironcurtain.text.columns import Style
from ironcurtain.text.display import one_line
from ironcurtain.view.commands import Command, Message
from ironcurtain.view.escalations import outcome_of_all, revoked

Change = Callable[[ConsoleState], ConsoleState]


async def perform(source: ConsoleSource, action: Command | Message) -> Change:
    """:returns: how the state shows what came of it."""
    try:
        match action:
            case Command("revoke", int(number)):
                return _said(revoked(await source.revoke(number)))
            case Command("start", text=text):
                info = await source.start(requested(text))
                said = _said(f"session {info.number} has started: ironcurtain attach {info.number} joins it", "good")
                return lambda state: said(state.choose(Section.SESSIONS, info.number))
            case Command("stop", int(session)):
                await source.stop(session)
                return _said(f"session {session} has ended")
            case Command("withdraw", number, session=session):
                return partial(_put_back, session, await source.withdraw(session, number or 0))
            case Message():
                await source.send(action.session, action.text, action.typed)
    except IronCurtainError as e:
        return _said(str(e), "warn")
    return lambda state: state


def _put_back(session: int, text: str, state: ConsoleState) -> ConsoleState:
    """Show what was taken back where it can be sent again, if it is one line and nothing else is typed there."""
    said = state.with_message(f"taken back from session {session}: {text}")
    if state.prompt is not None or state.question is not None or len(text) > PROMPT_LIMIT or one_line(text) != text:
        return said
    return replace(said, prompt=f"/message {text}", began=-inf, addressed=session)


def requested(text: str) -> SessionRequest:
    """
    :param text: a task, which may be empty, after options.
    :returns: the session that ``/start`` starts.
    :raises UsageError: an option is wrong.
    """
    given = {"--agent": "", "--workspace": ""}
    while (option := text.partition(" ")[0]) in given:
        given[option], _, text = text[len(option) :].lstrip().partition(" ")
        text = text.lstrip()
        if not given[option]:
            raise UsageError(f"{option} needs a value")
    if text.startswith("-"):
        raise UsageError(f"/start has no option {text.partition(' ')[0]}: there are {' and '.join(given)}, before TASK")
    workspace = given["--workspace"]
    if workspace and not f"{workspace}/".startswith(("/", "~/")):
        raise UsageError("begin the workspace with / or ~/: the daemon has a current directory of its own")
    return SessionRequest(given["--agent"], text, Path(user_path(workspace)) if workspace else None)


async def decide(source: ConsoleSource, sent: Sequence[Send]) -> Change:
    """
    Send decisions that were confirmed together.

    :returns: how the state shows the outcome of all of them.
    """
    deciding = {each.key.number: Deferred.fromCoroutine(_decide(source, each)) for each in sent}
    results = {number: await each for number, each in deciding.items()}
    return _said(*outcome_of_all(sent[0].outcome, results))


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
