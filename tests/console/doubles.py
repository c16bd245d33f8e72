"""What console tests share: a terminal in memory, a source that is given, and escalations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pyte
from twisted.internet.task import Clock

from ironcurtain.console.console import Console
from ironcurtain.errors import NotFound, StaleDecision, UsageError
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.operations.api import OnEvent
from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.session.model import SessionInfo, SessionRequest, Turn

NOW = 1_700_000_000.0
"""When the tests happen, in seconds since the epoch."""


def escalation(number: int = 1, arguments: dict[str, Any] | None = None, **fields: Any) -> EscalationView:
    """:returns: an escalation that waits."""
    known: dict[str, Any] = {
        "session": 1,
        "session_id": "0001",
        "label": "builtin: mend the tests",
        "server": "filesystem",
        "tool": "read_text_file",
        "arguments": arguments if arguments is not None else {"path": f"/home/ada/file{number}.txt"},
        "digest": f"{number:064x}",
        "rule": "outside-the-workspace",
        "reason": "reading outside of the workspace needs a person",
        "policy_version": "0" * 16,
        "raised_at": NOW - 1,
        "expires_at": NOW + 299,
    }
    return EscalationView(number=number, **(known | fields))


def permission(number: int = 1, **fields: Any) -> PermissionView:
    """:returns: an approval that was kept."""
    known: dict[str, Any] = {
        "session": 1,
        "session_id": "0001",
        "label": "builtin: mend the tests",
        "server": "filesystem",
        "tool": "read_text_file",
        "scope": "filesystem.read_text_file in /srv/src and below",
        "by": "ada",
        "since": NOW - 60,
        "used": 2,
    }
    return PermissionView(number=number, **(known | fields))


def session(number: int = 1, **fields: Any) -> SessionInfo:
    """:returns: a session that works."""
    known: dict[str, Any] = {
        "id": f"{number:04x}",
        "kind": "builtin",
        "label": "builtin: mend the tests",
        "state": "processing",
        "started_at": "2023-11-14T22:10:20+00:00",
        "workspace": "/home/ada/project",
    }
    return SessionInfo(number=number, **(known | fields))


class GivenSource:
    """A source with what a test puts into it."""

    def __init__(self) -> None:
        self.found: list[SessionInfo] = [session()]
        self.lacks: list[str] = []
        self.waiting: dict[int, EscalationView] = {}
        self.decided: list[tuple[int, Outcome, str | None]] = []
        self.answers: list[tuple[int, Mapping[str, Any] | None, str | None]] = []
        self.started: list[SessionRequest] = []
        self.sent: list[tuple[int, str, str]] = []
        self.turns: list[Turn] = []
        self.kept: dict[int, PermissionView] = {}
        self.listeners: list[Callable[[], None]] = []
        self.readers: dict[int, OnEvent] = {}

    def lacking(self) -> list[str]:
        return self.lacks

    async def sessions(self) -> list[SessionInfo]:
        return self.found

    async def escalations(self, closed: bool = False) -> list[EscalationView]:
        return [view for view in self.waiting.values() if closed or not view.outcome]

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """Nobody asks."""

    async def deny_all(self, name: int | str | None = None) -> list[int]:
        return []

    async def stop(self, name: int | str) -> SessionInfo:
        if not any(info.number == name for info in self.found):
            raise NotFound(f"there is no session {name}")
        (ended,) = [info for info in self.found if info.number == name]
        self.found.remove(ended)
        return ended

    async def start(self, request: SessionRequest) -> SessionInfo:
        if request.kind == "nobody":
            raise UsageError("there is no agent 'nobody'")
        self.started.append(request)
        self.found.append(session(9, state="ready"))
        return self.found[-1]

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        view = self.waiting[number]
        if view.outcome:
            raise StaleDecision(f"too late: escalation {number} was {view.outcome} by {view.by}")
        self.decided.append((number, outcome, digest))
        self.close(number, outcome.value, "ada", keep)
        if keep:
            self.kept[number] = permission(number, scope=view.scope)
        return self.waiting[number]

    async def answer(self, number: int, content: Mapping[str, Any] | None, digest: str | None = None) -> EscalationView:
        self.answers.append((number, content, digest))
        self.close(number, "cancelled" if content is None else "answered", "me")
        return self.waiting[number]

    async def send(self, session: int, message: str, typed: str) -> None:
        self.sent.append((session, message, typed))

    async def withdraw(self, session: int, number: int) -> str:
        waiting = [each for each in self.sent if each[0] == session]
        if not waiting:
            raise NotFound("no message waits")
        self.sent.remove(waiting[number - 1])
        return waiting[number - 1][1]

    async def history(self, session: int) -> list[Turn]:
        if not any(info.number == session for info in self.found):
            raise NotFound(f"there is no session {session}")
        return self.turns

    async def permissions(self) -> list[PermissionView]:
        return list(self.kept.values())

    async def revoke(self, number: int) -> PermissionView:
        if number not in self.kept:
            raise NotFound(f"there is no permission {number}")
        return self.kept.pop(number)

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(on_change)
        return lambda: self.listeners.remove(on_change)

    def activity(self, session: int, on_event: OnEvent) -> Callable[[], None]:
        self.readers[session] = on_event
        return lambda: self.readers.pop(session, None) and None

    def put(self, *views: EscalationView) -> None:
        """Raise escalations."""
        self.waiting |= {view.number: view for view in views}
        self.tell()

    def close(self, number: int, outcome: str, by: str, kept: bool = False) -> None:
        """Give an escalation its outcome."""
        end: dict[str, Any] = {"outcome": outcome, "by": by, "closed_at": NOW, "kept": kept}
        self.waiting[number] = msgspec.structs.replace(self.waiting[number], **end)

    def tell(self) -> None:
        """Say that something changed."""
        for listener in list(self.listeners):
            listener()


class MemoryTerminal:
    """A terminal of a size, which shows what is written to it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.blocked = False
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = b""
        self.closed: list[int] = []

    def write(self, data: bytes) -> None:
        self.sent += data
        # pyte shows what it does not know: the queries for modes, and what belongs to the window's title.
        self._stream.feed(data.replace(b"\x1b[22;0t", b"").replace(b"\x1b[23;0t", b""))

    def size(self) -> tuple[int, int]:
        return self.screen.columns, self.screen.lines

    def close(self, status: int) -> None:
        self.closed.append(status)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)


class Setup:
    """A console on a terminal in memory."""

    def __init__(
        self, columns: int = 80, rows: int = 24, *views: EscalationView, term: str = "xterm", attaches: bool = False
    ) -> None:
        self.clock, self.source = Clock(), GivenSource()
        self.source.put(*views)
        self.terminal = MemoryTerminal(columns, rows)
        self.time = NOW
        environ = {"TERM": term}
        self.console = Console(
            self.source, self.terminal, self.clock, "ada", environ=environ, now=lambda: self.time, attaches=attaches
        )
        self.console.start()
        self.settle()

    def settle(self) -> str:
        """
        Let everything happen that is about to.

        :returns: what is on the screen then.
        """
        self.clock.pump([0.0, 0.06, 0.06, 0.0, 0.0])
        return self.terminal.text

    def type(self, keys: str) -> str:
        """
        Press keys, each after a pause, and drawn before the next.

        :returns: what is on the screen then.
        """
        for key in keys:
            self.clock.advance(QUIET_SECONDS)
            self.console.received(key.encode())
            self.settle()
        return self.terminal.text
