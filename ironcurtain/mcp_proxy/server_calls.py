"""The open calls at each server, and what it asks meanwhile: its questions end when its last call is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from twisted.internet.defer import CancelledError, Deferred

Remind = Callable[[str], None]
"""Called with a message for the caller whenever its call still waits."""


class ServerCalls:
    """The open calls and questions of a session's servers, by server."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Remind]] = {}
        self._questions: dict[str, list[Deferred[bytes]]] = {}

    @contextmanager
    def during(self, server: str, remind: Remind | None) -> Iterator[None]:
        """
        A call is open. If it is cancelled, and the server has no other, the server's questions are withdrawn: a server
        does not have to say for which call it asks.
        """
        calls, reminding = self._calls.setdefault(server, []), remind or _nobody
        calls.append(reminding)
        cancelled = False
        try:
            yield
        except CancelledError:
            cancelled = True
            raise
        finally:
            calls.remove(reminding)
            if cancelled and not calls:
                for question in list(self._questions.get(server, ())):
                    question.cancel()

    def remind(self, server: str, message: str) -> None:
        """Tell the callers of a server what they wait for."""
        for remind in list(self._calls.get(server, ())):
            remind(message)

    def asking(self, server: str) -> int:
        """:returns: how many of a server's questions are open."""
        return len(self._questions.get(server, ()))

    def asked(self, server: str, question: Deferred[bytes]) -> Deferred[bytes]:
        """
        :param question: fires with its answer. Cancelling it withdraws it.
        :returns: the same.
        """
        questions = self._questions.setdefault(server, [])
        questions.append(question)

        def over(result: object) -> object:
            questions.remove(question)
            return result

        question.addBoth(over)
        return question


def _nobody(message: str) -> None:
    pass
