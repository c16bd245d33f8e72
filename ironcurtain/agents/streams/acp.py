"""
The Agent Client Protocol, version 1: JSON-RPC over lines, as OpenCode, Gemini CLI and Goose speak it.

The configuration's MCP servers are used although the protocol could name others. A second prompt during a turn would
cancel it or be mixed into it, depending on the agent, so none is sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ironcurtain.agents.outcome import CUT, TurnOutcome
from ironcurtain.agents.streams.reading import (
    OPEN_LIMIT,
    Collected,
    ObjectLines,
    argument_line,
    brief,
    dig,
    first_text,
    id_at,
    last_line,
    list_at,
    status_at,
    text_at,
)
from ironcurtain.agents.streams.reports import (
    Activity,
    Failed,
    Named,
    Outgoing,
    Remark,
    Report,
    Text,
    ToolFinished,
    ToolStarted,
    ToolStatus,
    TurnOver,
    Waiting,
)
from ironcurtain.agents.streams.rpc import Requests, notification, refusal, response
from ironcurtain.text.diffs import bounded, unified

_CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
_CLIENT = {"name": "ironcurtain", "version": "1"}
_STATUS: dict[str, ToolStatus] = {"completed": "success", "failed": "error", "cancelled": "cancelled"}


class Variant(msgspec.Struct, frozen=True):
    """
    How one agent speaks the protocol.

    :ivar lost: part of the line on standard error that says that the MCP server is not connected; empty: no line does.
    :ivar waits: matches a line on standard error about a request to the model that failed and is repeated: the group
        ``ms`` has the time until then, ``reason`` the reason; either may be missing.
    :ivar mode: the mode in which the agent asks nothing; empty: its own.
    :ivar compact: its command that shortens the conversation; empty: it has none.
    :ivar before_id: what stands before the id of a session that is loaded. If that is refused, the id alone is tried.
    """

    lost: str = ""
    waits: re.Pattern[str] | None = None
    mode: str = ""
    compact: str = ""
    before_id: str = ""


class AcpDialogue:
    """
    :param directory: where the agent works.
    :param conversation: id of the session to resume; empty: begin one.
    :param server: name of the MCP server whose calls are judged, and told of by events of their own.
    """

    resident = True

    def __init__(self, directory: str, conversation: str, server: str, variant: Variant) -> None:
        self._where: dict[str, Any] = {"cwd": directory, "mcpServers": []}
        self._session = conversation and f"{variant.before_id}{conversation}"
        self._server, self._variant, self._lost = server, variant, False
        self._lines, self._requests = ObjectLines(), Requests()
        self.ready = False
        self._first: str | None = None
        self._fresh()

    def _fresh(self) -> None:
        self._state, self._message = "", ""
        self._block = Collected()
        self._tools: dict[str, str] = {}
        self._held: dict[str, str] = {}

    def begin(self) -> bytes:
        """:returns: the handshake's first request."""
        return self._requests.request(
            "initialize", protocolVersion=1, clientCapabilities=_CAPABILITIES, clientInfo=_CLIENT
        )

    def message(self, text: str) -> bytes:
        """:returns: the prompt, once there is a session."""
        if not self.ready:
            self._first = text
            return b""
        self._fresh()
        prompt = [{"type": "text", "text": text}]
        return self._requests.request("session/prompt", sessionId=self._session, prompt=prompt)

    def compact(self) -> bytes:
        """:returns: its command, as a prompt."""
        return self.message(self._variant.compact) if self._variant.compact and self.ready else b""

    def join(self, text: str) -> None:
        """:returns: ``None``: no agent takes a message into a turn."""

    def interrupt(self) -> bytes:
        """:returns: the notification that cancels the turn."""
        if not self._requests.is_open("session/prompt"):
            return b""
        return notification("session/cancel", sessionId=self._session)

    def output(self, data: bytes) -> Iterator[Report]:
        """:returns: what these bytes say."""
        for message in self._lines.feed(data):
            if (method := self._requests.answered(message)) != "":
                yield from self._answered(method, message)
            elif message.get("method") == "session/request_permission" and "id" in message:
                yield Outgoing(_permitted(message))
            elif "id" in message and "method" in message:
                yield Outgoing(refusal(message))
            elif message.get("method") == "session/update" and self.ready:  # not while a session is loaded
                yield from self._update(dig(message, "params", "update"))

    def error_line(self, line: str) -> Iterator[Report]:
        """:returns: that the agent waits for its model, if the line says so."""
        lost, waits = self._variant.lost, self._variant.waits
        self._lost = self._lost or (bool(lost) and lost in line)
        if waits is not None and (found := waits.search(line)) is not None:
            named = found.groupdict()
            yield Waiting(int(named.get("ms") or 0) / 1000, brief(named.get("reason") or "the model gave no answer"))

    def ended(self, outcome: TurnOutcome) -> TurnOver:
        """:returns: a failure: turns end while the program goes on."""
        return TurnOver(str(self._block), Failed(kind="mcp-down" if self._lost else None))

    def _answered(self, method: str, message: dict[str, Any]) -> Iterator[Report]:
        failed = isinstance(message.get("error"), dict)
        match method:
            case "initialize" if not failed:
                yield Outgoing(self._open())
            case "session/load" if failed and self._session != self._conversation:
                self._session = self._conversation
                yield Outgoing(self._open())
            case "session/load" if failed:
                why = brief(_reason(message))
                yield Remark(f"the agent cannot resume its conversation and begins another one: {why}")
                self._session = ""
                yield Outgoing(self._open())
            case "session/new" | "session/load" if not failed:
                self._session = id_at(message, "result", "sessionId") or self._session
                yield Named(self._conversation)
                if mode := self._variant.mode:
                    yield Outgoing(self._requests.request("session/set_mode", sessionId=self._session, modeId=mode))
                else:
                    yield from self._begin_turn()
            case "session/set_mode" if not failed:
                yield from self._begin_turn()
            case "session/prompt" if not failed:
                yield self._over(text_at(message, "result", "stopReason"))
            case "session/prompt" | "initialize" | "session/new" | "session/set_mode":
                yield TurnOver(str(self._block), Failed(_reason(message), _http_status(message)))

    @property
    def _conversation(self) -> str:
        """The session's id as a later program is given it."""
        return self._session.removeprefix(self._variant.before_id)

    def _open(self) -> bytes:
        if self._session:
            return self._requests.request("session/load", sessionId=self._session, **self._where)
        return self._requests.request("session/new", **self._where)

    def _begin_turn(self) -> Iterator[Report]:
        self.ready = True
        if self._first is not None:
            first, self._first = self._first, None
            yield Activity("thinking")
            yield Outgoing(self.message(first))

    def _update(self, update: Any) -> Iterator[Report]:
        match dig(update, "sessionUpdate"):
            case "agent_message_chunk":
                yield from self._piece(text_at(update, "content", "text"), text_at(update, "messageId"))
            case "agent_thought_chunk":
                yield from self._does("thinking")
            case "tool_call" | "tool_call_update":
                yield from self._tool(update)

    def _piece(self, text: str, message: str) -> Iterator[Report]:
        if self._state != "answering" or message != self._message:
            self._state, self._message = "answering", message
            self._block.clear()
            yield Activity("answering")
        if text:
            self._block.add(text)
            yield Text(text)

    def _tool(self, update: Any) -> Iterator[Report]:
        identity, status = id_at(update, "toolCallId"), text_at(update, "status")
        title, kind = text_at(update, "title"), text_at(update, "kind")
        if not identity or (identity not in self._tools and len(self._tools) + len(self._held) >= OPEN_LIMIT):
            return
        if status == "pending" and identity not in self._tools:
            self._held[identity] = brief(title)  # its argument comes with the next update
            return
        if identity not in self._tools:
            name = self._held.pop(identity, "") or brief(kind) or "tool"
            arguments = argument_line(dig(update, "rawInput"))
            self._tools[identity] = name
            self._state = ""
            if self._judged(identity, name):
                return
            yield ToolStarted(identity, name, arguments or (brief(title) if title != name else ""))
        name = self._tools.get(identity, "")
        if status in _STATUS and self._tools.pop(identity, None) is not None and not self._judged(identity, name):
            content = [each for each in list_at(update, "content") if dig(each, "type") == "content"]
            said = first_text([dig(each, "content") for each in content])
            diff = _diff(update)
            yield ToolFinished(identity, _STATUS[status], "" if diff else last_line(said), diff)

    def _judged(self, identity: str, name: str) -> bool:
        # OpenCode names the tool by its server, Gemini CLI the call.
        return name.startswith(f"{self._server}_") or identity.startswith(f"mcp_{self._server}_")

    def _does(self, state: str) -> Iterator[Report]:
        if self._state != state:
            self._state = state
            yield Activity(state)

    def _over(self, reason: str) -> TurnOver:
        answer = str(self._block)
        match reason:
            case _ if self._lost:
                return TurnOver("", Failed(kind="mcp-down"))
            case "cancelled":
                return TurnOver(answer, Failed("it was interrupted"))
            case "max_tokens" if answer.strip():
                return TurnOver(f"{answer}\n{CUT}")
            case "end_turn" if answer.strip():
                return TurnOver(answer)
            case "end_turn":
                return TurnOver("", Failed(kind="empty"))
            case _:
                return TurnOver(answer, Failed(f"the turn ended: {reason.replace('_', ' ')}"))


def _permitted(message: dict[str, Any]) -> bytes:
    """:returns: the response that permits what the agent asks: its sandbox contains it."""
    options = list_at(message, "params", "options")
    allowing = (option for option in options if text_at(option, "kind").startswith("allow"))
    if (option := next(allowing, None)) is None:
        return response(message, {"outcome": {"outcome": "cancelled"}})
    return response(message, {"outcome": {"outcome": "selected", "optionId": dig(option, "optionId")}})


def _reason(message: dict[str, Any]) -> str:
    error = dig(message, "error")
    details = text_at(error, "data", "details") or text_at(error, "data", "message") or text_at(error, "data")
    said = text_at(error, "message")
    return f"{said}: {details}" if details and details != said else said


def _http_status(message: dict[str, Any]) -> int | None:
    return status_at(message, "error", "code") or status_at(message, "error", "data", "statusCode")


def _diff(update: Any) -> str:
    given = text_at(update, "rawOutput", "metadata", "diff")
    found = [each for each in list_at(update, "content") if dig(each, "type") == "diff"]
    made = "".join(unified(text_at(each, "path"), text_at(each, "oldText"), text_at(each, "newText")) for each in found)
    return bounded(made or given)
