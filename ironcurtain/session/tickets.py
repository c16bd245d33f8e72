"""Who may attach to a session's terminal from another process: tokens that are good once, and not for long. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from ironcurtain.errors import NotAllowed
from ironcurtain.terminal.model import Mode

TICKET_SECONDS = 10.0
"""How long a token may be used (our choice: whoever asked for it attaches at once)."""

MOST = 100
"""Most tokens that wait to be used (our choice); one more, and the oldest is forgotten."""


@dataclass(frozen=True, slots=True)
class _Issued:
    by: str
    mode: Mode
    until: float


class Tickets:
    """
    The tokens of one session.

    :param seconds: a clock that never goes back.
    :param new_token: makes what nobody can guess.
    """

    def __init__(
        self, seconds: Callable[[], float], new_token: Callable[[], str] = lambda: secrets.token_urlsafe(32)
    ) -> None:
        self._seconds, self._new_token = seconds, new_token
        self._issued: dict[str, _Issued] = {}

    def issue(self, by: str, mode: Mode) -> str:
        """
        :param by: who may attach.
        :param mode: as what.
        :returns: the token.
        """
        if len(self._issued) >= MOST:
            del self._issued[next(iter(self._issued))]
        token = self._new_token()
        self._issued[token] = _Issued(by, mode, self._seconds() + TICKET_SECONDS)
        return token

    def spend(self, token: str, mode: Mode) -> str:
        """
        Use a token up.

        :returns: who attaches.
        :raises NotAllowed: there is no such token (any more), or it is for another mode.
        """
        issued = self._issued.pop(token, None)
        if issued is None or issued.until < self._seconds() or issued.mode is not mode:
            raise NotAllowed("the token to attach is used, too old, or for something else: ask for a new one")
        return issued.by
