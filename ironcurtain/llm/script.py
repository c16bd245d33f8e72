"""
Read the file of a scripted model: what it answers, turn by turn, and what it expects to be asked.

A file is TOML::

    version = 1

    [[turns]]
    text = "Let me look."                 # shown word by word
    delay = 0.05                          # seconds before each word and each tool; 0 if missing
    code = "print(files.list('.'))"       # asks for the tool execute_code
    commands = [{ command = "ls", purpose = "See what is there" }]  # asks for the tool shell, once for each
    tools = [{ name = "write_file", input = { path = "x", content = "" } }]  # asks for any other tools

    [[turns]]
    expect = { last_result_contains = "notes.txt" }
    text = "There is one file, notes.txt."

A turn needs ``text``, ``code``, ``commands`` or ``tools`` and may have all of them. The fields of ``expect``, all
optional, are about the last message of the request: ``last_user_contains`` (its text), ``last_result_contains`` (its
tool results, joined) and ``last_result_is_error``. ``usage`` may say what a turn is to cost:
``{ input_tokens = 100, output_tokens = 20 }``.

Which turn comes is decided by the number of the model's answers in the request, so that a file serves any number of
sessions at once, and a session that is resumed goes on where it was. A turn with ``first_user_contains`` counts only in
conversations whose first message contains this text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.parsing import parse_toml
from ironcurtain.home.structured import check_version, convert
from ironcurtain.home.user_paths import user_path
from ironcurtain.llm.model import (
    Block,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolAsked,
    ToolResult,
    ToolStarted,
    ToolUse,
    UsageSeen,
)
from ironcurtain.text.decoding import decode_text
from ironcurtain.text.quantities import counted

VERSION: Final = 1
"""The version of the format that is written here."""

CODE_TOOL: Final = "execute_code"
"""Name of the tool that ``code`` asks for; its input is ``{"code": ...}``."""

COMMAND_TOOL: Final = "shell"
"""Name of the tool that ``commands`` ask for; its input is ``{"command": ..., "purpose": ...}``."""

_SHOWN: Final = 300
_WORD: Final = re.compile(r"\s*\S+\s*|\s+")


class Expectation(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the last message of a request must contain."""

    last_user_contains: str | None = None
    last_result_contains: str | None = None
    last_result_is_error: bool | None = None


class TurnUsage(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The reported usage of a turn."""

    input_tokens: int = 0
    output_tokens: int = 0


class ScriptedCommand(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One use of the tool ``shell``."""

    command: str
    purpose: str = ""


class ScriptedUse(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One use of another tool."""

    name: str
    input: dict[str, Any]


class ScriptedTurn(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    One answer.

    :param first_user_contains: what the first message of the conversation must contain, so that the turn counts.
    """

    first_user_contains: str = ""
    text: str = ""
    code: str = ""
    commands: tuple[ScriptedCommand, ...] = ()
    tools: tuple[ScriptedUse, ...] = ()
    delay: float = 0.0
    expect: Expectation = Expectation()
    usage: TurnUsage = TurnUsage()

    def words(self) -> list[str]:
        """:returns: the text in the pieces in which it is shown."""
        return _WORD.findall(self.text)

    def uses(self, number: int) -> list[ToolUse]:
        """
        :param number: of the turn, from 1.
        :returns: the tools that it asks for.
        """
        code = [ToolUse(f"scripted_{number}", CODE_TOOL, {"code": self.code})] if self.code else []
        commands = [ScriptedUse(COMMAND_TOOL, msgspec.to_builtins(command)) for command in self.commands]
        return code + [
            ToolUse(f"scripted_{number}_{position}", use.name, use.input)
            for position, use in enumerate((*commands, *self.tools), 1)
        ]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    turns: tuple[ScriptedTurn, ...]


class Script(msgspec.Struct, frozen=True):
    """
    A complete file.

    :ivar source: its name, for messages.
    """

    source: str
    turns: tuple[ScriptedTurn, ...]

    def answer(self, request: ModelRequest) -> tuple[ScriptedTurn, ModelReply]:
        """
        Find the next turn.

        :raises ModelError: of kind ``script``: no turn is left, or the request does not match the turn's expectation.
        """
        number = sum(message.role == "assistant" for message in request.messages)
        begun = _said(request.messages[0].content) if request.messages else ""
        turns = [turn for turn in self.turns if turn.first_user_contains in begun]
        if number >= len(turns):
            raise _mismatch(f"{self.source} has {counted(len(turns), 'turn')}, but another one was requested; add one")
        turn = turns[number]
        self._check(f"{self.source}: turn {number + 1}", turn.expect, request)
        text: list[Block] = [TextBlock(turn.text)] if turn.text else []
        uses = turn.uses(number + 1)
        usage = TokenUsage(turn.usage.input_tokens, turn.usage.output_tokens)
        return turn, ModelReply((*text, *uses), "tool_use" if uses else "end_turn", usage, request.model)

    def _check(self, place: str, expect: Expectation, request: ModelRequest) -> None:
        last = request.messages[-1].content if request.messages else ()
        results = [block for block in last if isinstance(block, ToolResult)]
        _contains(place, "the user's last message", expect.last_user_contains, _said(last))
        _contains(place, "the last result", expect.last_result_contains, "\n".join(r.content for r in results))
        if expect.last_result_is_error not in (None, any(result.is_error for result in results)):
            wanted, seen = ("an error", "none") if expect.last_result_is_error else ("no error", "one")
            raise _mismatch(f"{place}: expected {wanted} in the last result, saw {seen}")


def _said(content: Iterable[Block]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


def _contains(place: str, what: str, wanted: str | None, seen: str) -> None:
    if wanted is not None and wanted not in seen:
        shown = seen if len(seen) <= _SHOWN else seen[:_SHOWN] + "..."
        raise _mismatch(f"{place}: expected {what} to contain {wanted!r}, saw {shown!r}")


def _mismatch(detail: str) -> ModelError:
    return ModelError("script", detail)


def parse_script(text: str, source: str) -> Script:
    """
    Parse a file's text.

    :param source: name of the file, for messages.
    :raises ConfigurationError: it is not TOML, has a newer version, or a field is wrong.
    """
    table = parse_toml(source, text)
    check_version(source, table, VERSION, text)
    script: _File = convert(source, table, _File, text)
    turns = script.turns
    for number, turn in enumerate(turns, 1):
        _check_turn(turn, source, f"turns[{number}]")
    return Script(source, turns)


def _check_turn(turn: ScriptedTurn, source: str, field: str) -> None:
    if not turn.text.strip() and not turn.code.strip() and not turn.commands and not turn.tools:
        raise ConfigurationError(source, "needs text, code, commands or tools", field=field)
    if not all(command.command.strip() for command in turn.commands):
        raise ConfigurationError(source, "a command must not be empty", field=f"{field}.commands")
    if not 0 <= turn.delay <= 60:
        raise ConfigurationError(source, "delay must be from 0 to 60 seconds", field=field)
    if min(turn.usage.input_tokens, turn.usage.output_tokens) < 0:
        raise ConfigurationError(source, "usage must not be negative", field=field)


def load_script(path: str) -> Script:
    """
    Read a file of turns, in the format of :mod:`ironcurtain.llm.script`.

    :raises ConfigurationError: it cannot be read or is wrong.
    """
    try:
        with open(user_path(path), "rb") as file:
            return parse_script(decode_text(path, file.read()), path)
    except OSError as e:
        raise ConfigurationError(path, f"cannot be read: {e.strerror}") from None


class ScriptedModelClient:
    """
    Answers from a script, at a natural pace.

    :param clock: the reactor, or a ``Clock``; for delays between words.
    """

    name = "scripted"

    def __init__(self, script: Script, clock: IReactorTime) -> None:
        self._script, self._clock = script, clock

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        """See :meth:`ironcurtain.llm.model.ModelClient.converse`; errors are of kind ``script``."""
        turn, reply = self._script.answer(request)
        for word in turn.words():
            await self._wait(turn.delay)
            notify(TextDelta(word))
        for block in reply.content:
            if isinstance(block, ToolUse):
                notify(ToolStarted(block.name))
                await self._wait(turn.delay)
                notify(ToolAsked(block))
        notify(UsageSeen(reply.usage))
        return reply

    async def _wait(self, seconds: float) -> None:
        if seconds:
            await deferLater(self._clock, seconds)
