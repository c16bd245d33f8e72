"""The turns of a session: give the agent a message, and record what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from ironcurtain.audit.chain import timestamp
from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.session import events
from ironcurtain.session.history import History
from ironcurtain.session.model import Reply, Turn, Usage
from ironcurtain.session.parts import Services, SessionAgent


class Turns:
    """
    Runs one turn at a time.

    :param number: the session's, for messages in the log.
    :param emit: takes the events of a turn.
    :param prepare: called with a turn's number before the agent gets its message.
    :param answered: called when the agent is done, before the turn is recorded.
    :param end: called after that; never fails.
    :param joined: returns the messages that joined the turn.
    """

    log = Logger()

    def __init__(
        self,
        number: int,
        history: History,
        services: Services,
        emit: Callable[[events.SessionEvent], None],
        prepare: Callable[[int], Awaitable[None]],
        answered: Callable[[], None],
        end: Callable[[], Awaitable[None]],
        joined: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._number, self._history, self._services = number, history, services
        self._emit, self._prepare, self._answered, self._end, self._joined = emit, prepare, answered, end, joined

    async def run(self, agent: SessionAgent, message: str) -> Reply:
        """
        Give the agent a message.

        :raises SessionError: ``MESSAGE_FAILED``: there is no answer, or the message was cancelled.
        """
        number, began = len(self._history.turns) + 1, timestamp(self._services.now())
        redactor = self._services.redactor
        self._on_disk(lambda: self._history.begin(redactor.text(message), began))
        self._emit(events.TurnStarted(turn=number, message=redactor.live(message)))
        text, error, code = "", "", ""
        used: Usage | None = None
        try:
            await self._prepare(number)
            reply = await agent.respond(message)
            text, used = redactor.live(reply.text), reply.usage
            return Reply(text, used)
        except CancelledError:
            error, code = "cancelled", "CANCELLED"
            raise SessionError("MESSAGE_FAILED", "the message was cancelled") from None
        except IronCurtainError as e:
            error, code = str(e), e.code
            text = redactor.live(e.partial) if isinstance(e, SessionError) else ""
            raise
        except Exception as e:
            self.log.failure("a message to session {number} failed", number=self._number)
            error, code = f"internal error: {type(e).__name__}", "MESSAGE_FAILED"
            raise SessionError("MESSAGE_FAILED", f"{error}; see the session's log") from e
        finally:
            self._answered()
            await self._end()
            whole = "\n\n".join((message, *self._joined()))
            question, answer, failure = map(redactor.text, (whole, text, error))
            usage = used or agent.usage()
            turn = Turn(number=number, message=question, answer=answer, usage=usage, timestamp=began, error=failure)
            self._record(turn, text, code)

    def _record(self, turn: Turn, answer: str, code: str) -> None:
        self._on_disk(lambda: self._history.append(turn))
        self._emit(events.TurnFinished(turn=turn.number, answer=answer, error=turn.error, code=code))

    def _on_disk(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as e:
            self.log.critical("a turn of session {number} is not on disk: {error}", number=self._number, error=e)
