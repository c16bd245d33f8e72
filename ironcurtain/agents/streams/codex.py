"""
Codex's app server: JSON-RPC over lines, with threads, turns and items.

A steered message joins the turn at once while a command runs; while text comes, it would cut the text off. Text that a
broken connection cut off is repeated in another item, and its item never completes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
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
    Taken,
    Text,
    TextDropped,
    ToolFinished,
    ToolStarted,
    ToolStatus,
    TurnOver,
    Waiting,
)
from ironcurtain.agents.streams.rpc import Requests, notification, refusal
from ironcurtain.llm.model import TokenUsage
from ironcurtain.text.diffs import bounded

_QUIET = ("agentMessage", "reasoning", "userMessage", "hookPrompt", "plan", "contextCompaction", "functionCallOutput")
"""Kinds of items that are no tools."""

_LIMIT = "max_output_tokens"
"""Part of the reason of a turn that reached the limit of output tokens."""

MESSAGES = 8
"""Most messages whose pieces come at once; real ones come one after the other."""

_CLIENT = {"name": "ironcurtain", "title": "IronCurtain", "version": "1"}


class CodexDialogue:
    """
    :param directory: where the agent works.
    :param conversation: id of the thread to resume; empty: begin one.
    :param model: empty: that of its configuration.
    :param server: name of the MCP server without which a turn is in vain.
    """

    resident = True

    def __init__(self, directory: str, conversation: str, model: str, server: str) -> None:
        self._settings = {"cwd": directory, "approvalPolicy": "never", "sandbox": "danger-full-access"}
        if model:
            self._settings["model"] = model
        self._thread, self._server = conversation, server
        self._lines, self._requests = ObjectLines(), Requests()
        self.ready, self._lost = False, False
        self._first: str | None = None
        self._turn = ""
        self._handed: list[str] = []
        self._used = TokenUsage()
        self._fresh()

    def _fresh(self) -> None:
        self._message = ""
        self._pieces: dict[str, Collected] = {}
        self._tools: set[str] = set()
        self._failed, self._compacted = Failed(), False
        self._before: TokenUsage | None = None

    def begin(self) -> bytes:
        """:returns: the handshake's first request."""
        return self._requests.request("initialize", clientInfo=_CLIENT)

    def message(self, text: str) -> bytes:
        """:returns: the request for a turn, once there is a thread."""
        if not self.ready:
            self._first = text
            return b""
        self._fresh()
        return self._requests.request("turn/start", threadId=self._thread, input=_input(text))

    def compact(self) -> bytes:
        """:returns: the request, once there is a thread."""
        if not self.ready:
            return b""
        self._fresh()
        return self._requests.request("thread/compact/start", threadId=self._thread)

    def join(self, text: str) -> bytes | None:
        """:returns: the message while a command runs."""
        if not self._tools or not self._turn or any(self._pieces.values()):
            return None
        self._handed.append(text)
        return self._requests.request(
            "turn/steer", threadId=self._thread, expectedTurnId=self._turn, input=_input(text)
        )

    def interrupt(self) -> bytes:
        """:returns: the request that interrupts the turn."""
        if not self._turn:
            return b""
        return self._requests.request("turn/interrupt", threadId=self._thread, turnId=self._turn)

    def output(self, data: bytes) -> Iterator[Report]:
        """:returns: what these bytes say."""
        for message in self._lines.feed(data):
            if (method := self._requests.answered(message)) != "":
                yield from self._answered(method, message)
            elif "id" in message and "method" in message:
                yield Outgoing(refusal(message))
            else:
                yield from self._told(text_at(message, "method"), dig(message, "params"))

    def error_line(self, line: str) -> Iterable[Report]:
        """:returns: nothing: the app server's errors are notifications."""
        return ()

    def ended(self, outcome: TurnOutcome) -> TurnOver:
        """:returns: a failure, with the text so far: turns end while the server goes on."""
        return TurnOver(self._said, Failed(kind="mcp-down") if self._lost else self._failed)

    def _answered(self, method: str, message: dict[str, Any]) -> Iterator[Report]:
        error = text_at(message, "error", "message")
        failed = isinstance(message.get("error"), dict)
        match method:
            case "initialize" if not failed:
                yield Outgoing(notification("initialized"))
                yield Outgoing(self._open())
            case "thread/resume" if failed:
                yield Remark(f"Codex cannot resume its conversation and begins another one: {brief(error)}")
                self._thread = ""
                yield Outgoing(self._open())
            case "thread/start" | "thread/resume" if not failed:
                self._thread, self.ready = id_at(message, "result", "thread", "id"), True
                yield Named(self._thread)
                if self._first is not None:
                    first, self._first = self._first, None
                    yield Outgoing(self.message(first))
            case "turn/start" if not failed:
                self._turn = id_at(message, "result", "turn", "id")
            case "turn/steer" if failed:
                self._handed.clear()  # the turn was over: the message waits for the next one
            case "initialize" | "thread/start" | "turn/start" | "thread/compact/start" if failed:
                yield TurnOver("", Failed(error, kind="mcp-down" if self._lost else None))

    def _open(self) -> bytes:
        if self._thread:
            return self._requests.request("thread/resume", threadId=self._thread, **self._settings)
        return self._requests.request("thread/start", **self._settings)

    def _told(self, method: str, params: Any) -> Iterator[Report]:
        match method:
            case "turn/started":
                self._turn = id_at(params, "turn", "id")
                yield Activity("thinking")
            case "item/started":
                yield from self._begun(dig(params, "item"))
            case "item/agentMessage/delta":
                identity, text = id_at(params, "itemId"), text_at(params, "delta")
                if identity in self._pieces or len(self._pieces) < MESSAGES:
                    self._pieces.setdefault(identity, Collected()).add(text)
                yield Text(text)
            case "item/completed":
                yield from self._completed(dig(params, "item"))
            case "error":
                yield from self._error(params)
            case "thread/tokenUsage/updated":
                usage = dig(params, "tokenUsage")
                self._used = _counted(dig(usage, "total"))
                if self._before is None:  # the first request of a turn
                    self._before = _since(_counted(dig(usage, "last")), self._used)
            case "mcpServer/startupStatus/updated" if text_at(params, "name") == self._server:
                self._lost = text_at(params, "status") in ("failed", "cancelled")
            case "turn/completed":
                yield self._over(dig(params, "turn"))

    def _begun(self, item: Any) -> Iterator[Report]:
        identity, kind = id_at(item, "id"), text_at(item, "type")
        if kind == "agentMessage":
            yield from self._drop()
            if len(self._pieces) < MESSAGES:
                self._pieces[identity] = Collected()
            yield Activity("answering")
        elif kind == "reasoning":
            yield Activity("thinking")
        elif kind and kind not in _QUIET and identity and len(self._tools) < OPEN_LIMIT:
            self._tools.add(identity)
            if not self._judged(item):
                yield ToolStarted(identity, *_named(item, kind))

    def _completed(self, item: Any) -> Iterator[Report]:
        identity, kind = id_at(item, "id"), text_at(item, "type")
        if kind == "agentMessage":
            text, shown = text_at(item, "text"), self._pieces.pop(identity, None)
            if shown is None:
                yield Activity("answering")
            if rest := text.removeprefix("" if shown is None else str(shown)):
                yield Text(rest)
            self._message = text if text.strip() else self._message
        elif kind == "contextCompaction":
            self._compacted = True
        elif kind == "userMessage":
            if (text := first_text(list_at(item, "content"))) in self._handed:
                self._handed.remove(text)
                yield Taken(text)
        elif kind and kind not in _QUIET and identity:
            self._tools.discard(identity)
            if not self._judged(item):
                yield ToolFinished(identity, _status(item), *_result(item))

    def _judged(self, item: Any) -> bool:
        """:returns: whether a tool is one of the proxy's, of which an event of its own tells."""
        return text_at(item, "type") == "mcpToolCall" and text_at(item, "server") == self._server

    def _error(self, params: Any) -> Iterator[Report]:
        message, details = text_at(params, "error", "message"), text_at(params, "error", "additionalDetails")
        info = dig(params, "error", "codexErrorInfo")
        status = None
        for each in info.values() if isinstance(info, dict) else ():
            status = status_at(each, "httpStatusCode")
        self._failed = Failed(message, status, "quota" if info in ("usageLimitExceeded", "rateLimitExceeded") else None)
        if dig(params, "willRetry") is True:
            yield from self._drop()
            yield Waiting(0, brief(f"{message} ({details})" if details else message))

    def _over(self, turn: Any) -> TurnOver:
        status, error = text_at(turn, "status"), text_at(turn, "error", "message")
        usage = None if self._before is None else _since(self._before, self._used)
        self._turn = ""
        self._handed.clear()
        answer = self._message
        if status == "interrupted":
            return TurnOver(self._said, Failed("it was interrupted"), usage)
        if status != "completed" and _LIMIT in error and answer:
            return TurnOver(f"{answer}\n{CUT}", None, usage)
        if status != "completed":
            failed = Failed(error or self._failed.reason, self._failed.status, self._failed.kind)
            return TurnOver(answer, Failed(kind="mcp-down") if self._lost else failed, usage)
        if self._compacted and not answer:
            return TurnOver("the conversation is compacted", None, usage)
        return TurnOver(answer, None if answer else Failed(kind="empty"), usage)

    @property
    def _said(self) -> str:
        return "".join(map(str, self._pieces.values())) or self._message

    def _drop(self) -> Iterator[Report]:
        if any(self._pieces.values()):
            yield TextDropped()
        self._pieces.clear()


def _counted(counts: Any) -> TokenUsage:
    cached = count_at(counts, "cachedInputTokens")
    return TokenUsage(max(0, count_at(counts, "inputTokens") - cached), count_at(counts, "outputTokens"), cached)


def _since(before: TokenUsage, now: TokenUsage) -> TokenUsage:
    """:returns: what was used between two counts of the whole conversation."""
    fields = ("input_tokens", "output_tokens", "cache_read_tokens")
    return TokenUsage(*(max(0, getattr(now, name) - getattr(before, name)) for name in fields))


def _input(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _named(item: Any, kind: str) -> tuple[str, str]:
    """:returns: name and argument of a tool."""
    match kind:
        case "commandExecution":
            return "command", brief(_without_shell(text_at(item, "command")))
        case "fileChange":
            return "edit", brief(", ".join(text_at(change, "path") for change in list_at(item, "changes")))
        case "mcpToolCall":
            return f"{text_at(item, 'server')}.{text_at(item, 'tool')}", argument_line(dig(item, "arguments"))
        case _:
            return kind, argument_line({name: value for name, value in item.items() if isinstance(value, str)})


def _without_shell(command: str) -> str:
    """:returns: the command that the agent gave to its shell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[1] in ("-lc", "-c") else command


def _status(item: Any) -> ToolStatus:
    status = text_at(item, "status")
    return "success" if status in ("completed", "") else "cancelled" if status == "interrupted" else "error"


def _result(item: Any) -> tuple[str, str]:
    """:returns: a tool's result in a line, and its diff."""
    said = text_at(item, "aggregatedOutput") or first_text(dig(item, "result", "content"))
    exit_code = dig(item, "exitCode")
    words = last_line(said or text_at(item, "error", "message"))
    if isinstance(exit_code, int) and exit_code:
        words = f"exit status {exit_code}{f': {words}' if words else ''}"
    changes = list_at(item, "changes")
    return words, bounded("".join(_diff(change) for change in changes))


def _diff(change: Any) -> str:
    path, diff = text_at(change, "path"), text_at(change, "diff")
    if not diff:
        return ""
    kind = text_at(change, "kind", "type")
    if kind in ("add", "delete") and not diff.startswith("@@"):
        sign = "+" if kind == "add" else "-"
        diff = "".join(f"{sign}{line}\n" for line in diff.splitlines())
    return f"--- {path}\n+++ {path}\n{diff.rstrip(chr(10))}\n"
