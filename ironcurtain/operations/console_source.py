"""What a console needs of the sessions: the interface, whoever has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ironcurtain.operations.api import OnEvent, OversightApi
from ironcurtain.session.model import SessionInfo, SessionRequest, Turn


class ConsoleSource(OversightApi, Protocol):
    """What a console needs: lists, decisions and notification of changes."""

    def lacking(self) -> Sequence[str]:
        """:returns: sentences that say which sessions the lists lack, as those of other machines that are lost."""

    async def start(self, request: SessionRequest) -> SessionInfo:
        """Start a session, and give it its task as the first message."""

    async def send(self, session: int, message: str, typed: str) -> None:
        """
        Send a session a message, and wait until it is answered.

        :param typed: what of it a person typed.
        """

    async def withdraw(self, session: int, number: int) -> str:
        """See :meth:`ironcurtain.operations.api.SessionApi.withdraw`."""

    async def history(self, session: int) -> list[Turn]:
        """:returns: the messages of a session so far."""

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """
        Get notified when something may have changed.

        :returns: a function that ends the notifications.
        """

    def activity(self, session: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Receive a session's events, beginning with the past ones.

        :returns: a function that ends the delivery.
        """
