"""The terminal of a session, for viewers in this process and in others: who attaches is checked and recorded."""

from __future__ import annotations

from ironcurtain.errors import NotFound
from ironcurtain.home.layout import private_directory
from ironcurtain.session import events
from ironcurtain.session.markers import bell, marker
from ironcurtain.session.model import Ticket
from ironcurtain.session.parts import Core, Listener
from ironcurtain.session.tickets import Tickets
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.remote_server import AttachFactory
from ironcurtain.terminal.wire import Hello


class SharedTerminal:
    """
    :param hub: of the agent's program.
    """

    def __init__(self, core: Core, hub: Hub) -> None:
        self._core, self._hub = core, hub
        self._tickets = Tickets(core.services.clock.seconds)
        self._run = core.services.home.session_run(core.id)
        self._listener: Listener | None = None

    async def start(self) -> None:
        """Let viewers of other processes in."""
        private_directory(self._run.directory)
        private_directory(self._run.host)
        factory = AttachFactory(self._check, self._core.services.clock)
        self._listener = await self._core.services.listen(self._run.stream_socket, factory)

    async def stop(self) -> None:
        """Let nobody in any more; who is there stays until the program ends."""
        if self._listener is not None:
            await self._listener.stop()

    def attach(self, by: str, mode: Mode) -> Hub:
        """
        Let somebody attach.

        :param by: for the record.
        :raises AuditUnavailable: it cannot be recorded.
        """
        self._core.audit.append("attach", by=by, mode=mode)
        return self._hub

    def ticket(self, by: str, mode: Mode) -> Ticket:
        """:returns: what lets somebody attach from another process."""
        return Ticket(session=self._core.id, socket=str(self._run.stream_socket), token=self._tickets.issue(by, mode))

    def tell(self, event: events.SessionEvent) -> None:
        """What happened in the session: it is marked in the recording, and may ring at the viewers."""
        if self._hub.over is not None:
            return
        if text := bell(event):
            self._hub.bell(text)
        elif text := marker(event):
            self._hub.mark(text)

    def _check(self, hello: Hello) -> Hub:
        if hello.session != self._core.id:
            raise NotFound(f"session {hello.session} is not served here")
        return self.attach(self._tickets.spend(hello.token, hello.mode), hello.mode)
