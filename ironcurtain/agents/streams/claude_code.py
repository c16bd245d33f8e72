"""
Claude Code's JSON lines in both directions: ``--input-format stream-json --output-format stream-json --verbose
--include-partial-messages --replay-user-messages``.

Text comes twice, in pieces and then in whole blocks. A block that was shown in pieces and never came whole was cut off.
After its limit of output tokens, Claude Code continues by itself, and its result has only the last part.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ironcurtain.agents.outcome import CUT, TurnOutcome
from ironcurtain.agents.streams.reading import (
    OPEN_LIMIT,
    Collected,
    ObjectLines,
    argument_line,
    brief,
    count_at,
    dig,
    first_text,
    hunks,
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
    Report,
    Taken,
    Text,
    TextDropped,
    ToolFinished,
    ToolStarted,
    TurnOver,
    Waiting,
)
from ironcurtain.llm.model import TokenUsage
from ironcurtain.text.diffs import unified

INTERRUPTED = "it was interrupted"
"""The reason of a turn that something else than IronCurtain interrupted."""

_SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code wrote itself, such as errors."""

_ABORTED = "aborted"
_COMPACTED = "compacted"
"""How a turn stops that only shortens the conversation; not of Anthropic's API."""

_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")


class _HandedOver:
    """
    Messages that the program got while a turn ran, until they are part of the conversation.

    :param identify: returns a new identifier of a message.
    """

    def __init__(self, identify: Callable[[], str]) -> None:
        self._identify = identify
        self._texts: dict[str, str] = {}
        self._withdrawn: dict[str, str] = {}
        self._requests = 0

    def add(self, text: str) -> bytes:
        """:returns: the message."""
        identity = self._identify()
        self._texts[identity] = text
        return _said(text, uuid=identity)

    def take(self, text: str) -> bool:
        """:returns: whether there was such a message, which is now part of the conversation."""
        identity = next((each for each, handed in self._texts.items() if handed == text), None)
        return identity is not None and self._texts.pop(identity) == text

    def interrupt(self) -> bytes:
        """:returns: the requests that take all of them back, and interrupt the turn."""
        lines = []
        for identity in self._texts:
            name, line = self._request(subtype="cancel_async_message", message_uuid=identity)
            self._withdrawn[name] = identity
            lines.append(line)
        return b"".join((*lines, self._request(subtype="interrupt")[1]))

    def answered(self, response: Any) -> None:
        """A request was answered."""
        identity = self._withdrawn.pop(text_at(response, "request_id"), "")
        if dig(response, "response", "cancelled") is True:
            self._texts.pop(identity, None)

    def _request(self, **request: str) -> tuple[str, bytes]:
        self._requests += 1
        name = f"ic-{self._requests}"
        return name, _line({"type": "control_request", "request_id": name, "request": request})


class ClaudeDialogue:
    """
    :param server: name of the MCP server without which a turn is in vain.
    :param identify: returns a new identifier of a message. Claude Code ignores a message with one that it knows.
    """

    resident = ready = True

    def __init__(self, server: str, identify: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        self._server, self._lines, self._handed = server, ObjectLines(), _HandedOver(identify)
        self._tools: set[str] = set()
        self._judged: set[str] = set()
        self._fresh()

    def _fresh(self) -> None:
        self._pieces = Collected()
        self._stop = ""
        self._state = ""
        self._block, self._carried = Collected(), Collected()
        self._lost = False
        self._failed = Failed()

    def begin(self) -> bytes:
        """:returns: nothing."""
        return b""

    def message(self, text: str) -> bytes:
        """:returns: the message, unless the program has it already, since it was handed over too late for a turn."""
        return b"" if self._handed.take(text) else _said(text)

    def compact(self) -> bytes:
        """:returns: the command, as a message."""
        return _said("/compact")

    def join(self, text: str) -> bytes | None:
        """:returns: the message while a tool runs: it joins the turn when that has ended."""
        if not self._tools:
            return None
        return self._handed.add(text)

    def interrupt(self) -> bytes:
        """:returns: the requests that take back what has not joined the turn, and interrupt it."""
        return self._handed.interrupt()

    def output(self, data: bytes) -> Iterator[Report]:
        """:returns: what these bytes say."""
        for event in self._lines.feed(data):
            yield from self._read(event)

    def error_line(self, line: str) -> Iterable[Report]:
        """:returns: nothing: it writes nothing there that its output lacks."""
        return ()

    def ended(self, outcome: TurnOutcome) -> TurnOver:
        """:returns: a failure, with the text so far: the program says how a turn ended."""
        said = f"{self._carried}{self._block}{self._pieces}"
        return self._over(said, Failed(kind="mcp-down") if self._lost else self._failed, None)

    def _read(self, event: dict[str, Any]) -> Iterator[Report]:
        match event.get("type"):
            case "system":
                yield from self._system(event)
            case "stream_event" if not event.get("parent_tool_use_id"):
                yield from self._piece(dig(event, "event"))
            case "assistant":
                yield from self._whole(event)
            case "user":
                yield from self._user(event)
            case "result":
                yield from self._drop()
                yield self._result(event)
            case "control_response":
                self._handed.answered(dig(event, "response"))
            case "control_request":
                answer = {"subtype": "error", "request_id": text_at(event, "request_id"), "error": "not supported"}
                yield Outgoing(_line({"type": "control_response", "response": answer}))

    def _system(self, event: dict[str, Any]) -> Iterator[Report]:
        match event.get("subtype"):
            case "init":
                self._lost = _lost_tools(event, self._server)
                if conversation := id_at(event, "session_id"):
                    yield Named(conversation)
            case "status" if event.get("status") == "requesting":
                yield from self._does("thinking")
            case "api_retry":
                reason = text_at(event, "error")
                status = status_at(event, "error_status")
                words = " ".join(str(part) for part in (status, reason) if part and part != "unknown")
                self._failed = Failed(words or "the connection broke", status)
                yield Waiting(count_at(event, "retry_delay_ms") / 1000, self._failed.reason)
            case "compact_boundary":
                if dig(event, "compact_metadata", "trigger") == "manual":
                    self._stop = _COMPACTED
            case "task_notification":
                yield ToolFinished(
                    id_at(event, "tool_use_id"),
                    "success" if event.get("status") == "completed" else "error",
                    brief(text_at(event, "summary")),
                )

    def _piece(self, event: Any) -> Iterator[Report]:
        match dig(event, "type"):
            case "message_start":
                self._failed = Failed()
                yield from self._drop()
            case "content_block_start" if text_at(event, "content_block", "type") == "text":
                yield from self._text_begins()
            case "content_block_start":
                yield from self._does("thinking")
            case "content_block_delta" if text := text_at(event, "delta", "text"):
                self._pieces.add(text)
                yield Text(text)
            case "message_delta":
                self._stop = text_at(event, "delta", "stop_reason")
            case "message_stop":
                yield from self._drop()

    def _whole(self, event: dict[str, Any]) -> Iterator[Report]:
        parent = id_at(event, "parent_tool_use_id")
        is_error = event.get("is_api_error_message") or event.get("error")  # the latter up to 2.1.197 at least
        if text_at(event, "message", "model") == _SYNTHETIC and is_error:
            self._failed = Failed(status=status_at(event, "api_error_status"))
            return
        for block in list_at(event, "message", "content"):
            match dig(block, "type"):
                case "text" if not parent:
                    yield from self._whole_text(text_at(block, "text"))
                case "tool_use":
                    yield from self._tool(block, parent)

    def _whole_text(self, text: str) -> Iterator[Report]:
        shown = str(self._pieces)
        if shown and not text.startswith(shown):
            yield from self._drop()
            shown = ""
        if not shown:
            yield from self._text_begins()
        if rest := text[len(shown) :]:
            yield Text(rest)
        self._pieces.clear()
        self._block.add(text)

    def _tool(self, block: Any, parent: str) -> Iterator[Report]:
        if (identity := id_at(block, "id")) and max(len(self._tools), len(self._judged)) < OPEN_LIMIT:
            if not parent:
                self._tools.add(identity)
                self._block.clear()
                self._carried.clear()
                self._state = ""
            if (name := text_at(block, "name")).startswith(f"mcp__{self._server}__"):
                self._judged.add(identity)  # an event of its own tells of it
                return
            yield ToolStarted(identity, name, argument_line(dig(block, "input")), parent)

    def _user(self, event: dict[str, Any]) -> Iterator[Report]:
        content = dig(event, "message", "content")
        if event.get("isReplay"):
            if self._handed.take(text := first_text(content)):
                yield Taken(text)
        elif event.get("isSynthetic"):
            if self._stop == "max_tokens":
                self._carried.add(str(self._block))
                self._block.clear()
            return
        for block in content if isinstance(content, list) else ():
            if dig(block, "type") == "tool_result" and (identity := id_at(block, "tool_use_id")):
                self._tools.discard(identity)
                if identity in self._judged:
                    self._judged.remove(identity)
                    continue
                failed = bool(dig(block, "is_error"))
                diff = "" if failed else _diff(event.get("tool_use_result"))
                said = "" if diff else last_line(first_text(dig(block, "content")))
                yield ToolFinished(identity, "error" if failed else "success", said, diff)

    def _result(self, event: dict[str, Any]) -> TurnOver:
        self._tools.clear()
        self._judged.clear()
        usage, reason = _usage(event), text_at(event, "terminal_reason")
        text = text_at(event, "result")
        errors = [each for each in list_at(event, "errors") if isinstance(each, str) and "_diagnostic]" not in each]
        if self._lost:
            return self._over("", Failed(text, kind="mcp-down"), usage)
        if reason.startswith(_ABORTED):
            return self._over(f"{self._carried}{self._block}", Failed(INTERRUPTED), usage)
        if event.get("is_error"):
            status = status_at(event, "api_error_status") or self._failed.status
            return self._over("", Failed(text or "; ".join(errors) or reason.replace("_", " "), status), usage)
        # Version 2.1.197 has no field for it.
        local = text_at(event, "local_command") or ("compact" if self._stop == _COMPACTED else "")
        if local:
            text = text or str(self._block) or f"{local}: done"
        answer = f"{self._carried}{text}"
        if not answer.strip():
            return self._over("", Failed(kind="empty"), usage)
        return self._over(f"{answer}\n{CUT}" if self._stop == "max_tokens" else answer, None, usage)

    def _over(self, answer: str, failed: Failed | None, usage: TokenUsage | None) -> TurnOver:
        self._fresh()
        return TurnOver(answer, failed, usage)

    def _text_begins(self) -> Iterator[Report]:
        """A block of text begins, unless it continues what the limit of output tokens cut off."""
        self._state = "answering"
        if not self._carried:
            yield Activity("answering")

    def _does(self, state: str) -> Iterator[Report]:
        if self._state != state and not self._carried:
            self._state = state
            yield Activity(state)

    def _drop(self) -> Iterator[Report]:
        if self._pieces:
            self._pieces.clear()
            yield TextDropped()


def _said(text: str, **more: str) -> bytes:
    return _line({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}, **more})


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _lost_tools(event: dict[str, Any], server: str) -> bool:
    named = [each for each in list_at(event, "mcp_servers") if text_at(each, "name") == server]
    return not any(text_at(each, "status") in ("connected", "pending") for each in named)


def _diff(result: Any) -> str:
    path = text_at(result, "filePath")
    if found := list_at(result, "structuredPatch"):
        return hunks(path, found)
    if path and text_at(result, "type") == "create":
        return unified(path, "", text_at(result, "content"))
    return ""


def _usage(event: dict[str, Any]) -> TokenUsage:
    models = event.get("model_usage_since_last_result")
    used = TokenUsage()
    for counts in models.values() if isinstance(models, dict) else ():
        used += TokenUsage(*(count_at(counts, name) for name in _COUNTS))
    return used
