"""Sessions with a terminal, seen with OpenSSH's client: those of this process, and those of another."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred

from ironcurtain.errors import NotFound
from ironcurtain.operations import Principal, Role
from ironcurtain.operations.operations import Operations
from ironcurtain.services import unix_socket
from ironcurtain.session.model import Ticket
from ironcurtain.ssh.attaching import Attaching
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.sequences import RESTORE
from tests.audit.doubles import scratch
from tests.session.doubles import World, request
from tests.ssh.doubles import Client, Holder, reactor
from tests.ssh.test_client import SshTestCase
from tests.terminal.doubles import Program


class OwnTests(SshTestCase):
    """The session is one of the process that serves SSH."""

    async def begin(self) -> tuple[Hub, Program]:
        """:returns: the terminal of a new session, and its program."""
        self.server.attaching = Attaching(reactor, self.server.operations.terminal, self.nowhere)
        return await self.made(self.server.world)

    async def made(self, world: World) -> tuple[Hub, Program]:
        """Make a session with a terminal."""
        session = await world.manager.create(request(terminal=(80, 24)))
        self.addCleanup(lambda: Deferred.fromCoroutine(world.manager.close(session, "over")))
        hub = session.terminal
        assert hub is not None
        self.addCleanup(hub.ended, ProgramExit(None))
        return hub, world.programs[-1]

    async def nowhere(self, who: Principal, session: str, mode: Mode) -> Ticket:
        raise NotFound(f"there is no session {session}")

    def attach(self, holder: Holder, how: str = "attach", session: str = "1") -> Client:
        """:returns: a client with a terminal."""
        return self.server.ssh(holder, "-t", "--", how, session, terminal=(90, 30))

    async def test_both_ways(self) -> None:
        hub, program = await self.begin()
        hub.received(b"what was there before\r\n")
        client = self.attach(self.server.listed("ada", Role.ATTACH))
        await client.until(b"what was there before")
        self.assertEqual(hub.size, (90, 30))
        hub.received(b"and after")
        await client.until(b"and after")
        client.type(b"typed")
        while program.typed != b"typed":
            await self.turn()
        client.resize(100, 40)
        while hub.size != (100, 40):
            await self.turn()
        self.assertEqual(program.sizes[-1], (100, 40))

    async def test_leaving_ends_nothing(self) -> None:
        hub, program = await self.begin()
        ada = self.server.listed("ada", Role.ATTACH)
        for keys in (b"\x1c", b"\x1dd"):
            client = self.attach(ada)
            hub.received(b"\x1b[?1049hfull")
            await client.until(b"full")
            client.type(keys)
            await client.ended
            while hub.viewers:
                await self.turn()
            self.assertEqual((client.status, hub.over), (0, None))
            self.assertIn(RESTORE, client.out)
            self.assertIn(b"\r\nironcurtain: session 1: detached; it continues\r\n", client.out)
        self.assertEqual(program.typed, b"")

    async def test_the_end_of_the_program(self) -> None:
        hub, _ = await self.begin()
        client = self.attach(self.server.listed("ada", Role.ATTACH))
        hub.received(b"here")
        await client.until(b"here")
        hub.ended(ProgramExit(7, "the agent ended: exit status 7"))
        await client.ended
        self.assertEqual(client.status, 7)
        self.assertIn(b"\r\nironcurtain: session 1: the agent ended: exit status 7\r\n", client.out)

    async def test_who_looks_on_types_nothing(self) -> None:
        hub, program = await self.begin()
        eve = self.server.listed("eve", Role.VIEW)
        client = self.attach(eve, "observe")
        hub.received(b"here")
        await client.until(b"here")
        client.type(b"unheard")
        while hub.viewers:
            client.type(b"\x1c")
            await self.turn()
        await client.ended
        self.assertEqual((client.status, program.typed, program.sizes), (0, b"", []))
        refused = self.attach(eve)
        await refused.ended
        self.assertEqual(refused.status, 77)

    async def test_a_client_that_is_killed_leaves(self) -> None:
        hub, _ = await self.begin()
        client = self.attach(self.server.listed("ada", Role.ATTACH))
        hub.received(b"here")
        await client.until(b"here")
        client.kill()
        while hub.viewers:
            await self.turn()
        self.assertIsNone(hub.over)

    async def test_where_there_is_no_terminal(self) -> None:
        await self.begin()
        ada = self.server.listed("ada", Role.ATTACH)
        plain = await self.server.world.manager.create(request())
        self.addCleanup(lambda: Deferred.fromCoroutine(self.server.world.manager.close(plain, "over")))
        client = self.attach(ada, session=str(plain.number))
        await client.ended
        self.assertEqual(client.status, 1)
        self.assertIn(b"has no terminal: it takes messages", client.out)
        client = self.attach(ada, session="99")
        await client.ended
        self.assertEqual(client.status, 69)

    async def turn(self) -> None:
        """Let the reactor turn."""
        turned: Deferred[None] = Deferred()
        reactor.callLater(0.01, turned.callback, None)
        await turned


class OtherProcessTests(OwnTests):
    """The same, where another process has the session: it is reached over its socket, with a token."""

    async def begin(self) -> tuple[Hub, Program]:
        self.other = World(scratch(self), reactor=reactor)
        self.operations = Operations(self.other.manager)
        self.server.attaching = Attaching(reactor, self.server.operations.terminal, self.ticket)
        made = await self.made(self.other)
        (factory,) = self.other.served.values()
        self.socket: Path = scratch(self) / "stream.sock"
        listener = await unix_socket.listen(self.socket, factory)
        self.addCleanup(lambda: Deferred.fromCoroutine(listener.stop()))
        # Another number than those of the process that serves SSH.
        self.server.world.home.numbers("session").write_text("7")
        return made

    async def ticket(self, who: Principal, session: str, mode: Mode) -> Ticket:
        """:returns: what the other process gives out."""
        ticket = self.operations.ticket(who, session, mode)
        return Ticket(session=ticket.session, socket=str(self.socket), token=ticket.token)

    async def test_an_owner_that_is_gone(self) -> None:
        hub, _ = await self.begin()
        client = self.attach(self.server.listed("ada", Role.ATTACH))
        hub.received(b"here")
        await client.until(b"here")
        (attachment,) = hub._attachments
        attachment._viewer.transport.abortConnection()  # type: ignore[attr-defined]
        await client.ended
        self.assertEqual(client.status, 69)
        self.assertIn(RESTORE, client.out)
        self.assertIn(b"session 1: the connection to the session was lost", client.out)
