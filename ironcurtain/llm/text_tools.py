"""
Tools for models that only read and write text: they are described in the prompt, and asked for in fenced blocks.

A block that asks for the tool ``shell`` looks so; what stands behind the tool's name is the purpose::

    ```shell Look what is there
    ls -l
    ```
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ironcurtain.llm.model import (
    Block,
    ChatMessage,
    ModelEvent,
    ModelRequest,
    TextBlock,
    TextDelta,
    ToolAsked,
    ToolResult,
    ToolSpec,
    ToolStarted,
    ToolUse,
)
from ironcurtain.text.quantities import counted

PURPOSE: Final = "purpose"
"""Name of the argument that stands behind the tool's name."""

LINE_LIMIT: Final = 1024
"""Most characters of a line that could still begin or end a block; longer ones are text at once."""

_FENCE: Final = re.compile(r" {0,3}(`{3,})([^`]*)")
_HEADING: Final = re.compile(r"^(?=### )", re.MULTILINE)
_FENCES: Final = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
_MAYBE_FENCE: Final = re.compile(r" {0,3}(?:`.*)?", re.DOTALL)

_PROTOCOL: Final = """
To use a tool, write a fenced block: three backticks and the tool's name, what it is for on the same line, the tool's \
input on the next lines, and three backticks on a line of their own at the end. If a line of the input begins with \
backticks, use more of them around it. Blocks of any other kind are only shown. You may write several blocks; nothing \
runs before your answer ends, and the results come in the next message. Never write results yourself.
"""


class _Fence(msgspec.Struct, frozen=True):
    """A line that begins or ends a block: its backticks, the word behind them, and what follows."""

    ticks: str
    word: str
    rest: str

    def closes(self, ticks: str) -> bool:
        """Whether it ends a block that began with so many backticks."""
        return not self.word and len(self.ticks) >= len(ticks)


def _fence_in(line: str) -> _Fence | None:
    match = _FENCE.fullmatch(line.rstrip()) if len(line) <= LINE_LIMIT else None
    if match is None:
        return None
    word, _, rest = match[2].strip().partition(" ")
    return _Fence(match[1], word, rest.strip())


class TextTool(msgspec.Struct, frozen=True):
    """
    A tool whose input is one text.

    :param argument: name of the argument that the block's lines are.
    :param has_purpose: whether it also has an argument :data:`PURPOSE`.
    """

    name: str
    argument: str
    has_purpose: bool


def text_tools(tools: Sequence[ToolSpec]) -> dict[str, TextTool]:
    """:returns: the tools that can be asked for in a block, by name: those with one argument besides the purpose."""
    found: dict[str, TextTool] = {}
    for tool in tools:
        names: list[str] = list(tool.schema.get("properties", {}))
        arguments = [name for name in names if name != PURPOSE]
        if len(arguments) == 1:
            found[tool.name] = TextTool(tool.name, arguments[0], PURPOSE in names)
    return found


def written_prompt(request: ModelRequest) -> str:
    """:returns: a whole request as one text that ends where the model's answer begins."""
    parts = [request.system.strip(), _described(request.tools)]
    tools = text_tools(request.tools)
    parts += (_written(message, tools) for message in request.messages)
    return "\n\n".join(part for part in (*parts, "### Assistant\n") if part)


def _described(tools: Sequence[ToolSpec]) -> str:
    if not tools:
        return ""
    described = "\n\n".join(f"Tool `{tool.name}`: {tool.description}" for tool in tools)
    return f"{described}\n{_PROTOCOL.rstrip()}"


def _written(message: ChatMessage, tools: Mapping[str, TextTool]) -> str:
    parts = [written for block in message.content if (written := _block(block, tools))]
    role = "Assistant" if message.role == "assistant" else "User"
    return f"### {role}\n" + "\n\n".join(parts)


def _block(block: Block, tools: Mapping[str, TextTool]) -> str:
    match block:
        case TextBlock(text):
            return _HEADING.sub("\\\\", text)  # nobody else begins a part
        case ToolUse(_, name, input) if name in tools:
            return _fenced(name, str(input.get(PURPOSE, "")), str(input.get(tools[name].argument, "")))
        case ToolResult(_, content, is_error, images):
            left_out = counted(len(images), "picture is", "pictures are")
            unseen = f"\n[{left_out} left out: you read only text]" if images else ""
            return _fenced("error" if is_error else "result", "", _HEADING.sub("\\\\", content + unseen))
    return ""


def _fenced(word: str, purpose: str, body: str) -> str:
    longest = max((len(fence) for fence in _FENCES.findall(body)), default=2)
    fence = "`" * max(3, longest + 1)
    head = f"{fence}{word} {' '.join(purpose.replace('`', chr(39)).split())}".rstrip()
    return f"{head}\n{body}\n{fence}"


class TextToolReader:
    """
    Take an answer apart into text and uses of tools, as it comes.

    :param tools: those that can be asked for.
    :param prefix: what the ids of tool uses begin with; unique in a conversation.
    :ivar blocks: what has come so far, for the conversation.
    """

    def __init__(self, tools: Mapping[str, TextTool], prefix: str) -> None:
        self._tools, self._prefix = tools, prefix
        self._line = ""
        self._shown = 0
        self._fence = ""
        self._tool: TextTool | None = None
        self._purpose = ""
        self._body: list[str] = []
        self._text: list[str] = []
        self._uses = 0
        self.blocks: list[Block] = []

    def feed(self, text: str) -> list[ModelEvent]:
        """
        :param text: the next piece of the answer.
        :returns: what there is to tell.
        """
        told: list[ModelEvent] = []
        *whole, rest = text.split("\n")
        for line in whole:
            self._line += line
            told += self._ended("\n")
        self._line += rest
        return told + self._early()

    def close(self) -> list[ModelEvent]:
        """The answer ends. A block that has no end asks for nothing; it is shown as text."""
        told = self._ended("") if self._line else []
        if self._tool is not None:
            head = f"{self._fence}{self._tool.name} {self._purpose}".rstrip()
            told += self._show("\n".join((head, *self._body)))
            self._tool = None
        self._end_text()
        return told

    def _early(self) -> list[ModelEvent]:
        """Show what cannot be a fence before its line is whole."""
        if self._tool is None and (self._shown or len(self._line) > LINE_LIMIT or not self._may_be_fence()):
            new = self._line[self._shown :]
            self._shown = len(self._line)
            return self._show(new)
        return []

    def _may_be_fence(self) -> bool:
        return _MAYBE_FENCE.fullmatch(self._line) is not None

    def _ended(self, end: str) -> list[ModelEvent]:
        line, shown = self._line, self._shown
        self._line, self._shown = "", 0
        fence = _fence_in(line) if not shown else None
        if self._tool is not None:
            return self._inside(line, fence)
        if fence is not None and not self._fence and fence.word in self._tools:
            self._tool, self._fence, self._purpose = self._tools[fence.word], fence.ticks, fence.rest
            self._body = []
            return [ToolStarted(self._tool.name)]
        if fence is not None and (not self._fence or fence.closes(self._fence)):
            self._fence = "" if self._fence else fence.ticks  # of a block that is only text
        return self._show(line[shown:] + end)

    def _inside(self, line: str, fence: _Fence | None) -> list[ModelEvent]:
        assert self._tool is not None
        if fence is None or not fence.closes(self._fence):
            self._body.append(line.removesuffix("\r"))
            return []
        tool, body = self._tool, "\n".join(self._body)
        self._tool, self._fence = None, ""
        if not body.strip():
            return []
        self._uses += 1
        input: dict[str, Any] = {tool.argument: body}
        if tool.has_purpose:
            input[PURPOSE] = self._purpose
        use = ToolUse(f"{self._prefix}_{self._uses}", tool.name, input)
        self._end_text()
        self.blocks.append(use)
        return [ToolAsked(use)]

    def _show(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self._text.append(text)
        return [TextDelta(text)]

    def _end_text(self) -> None:
        text, self._text = "".join(self._text), []
        if text.strip():
            self.blocks.append(TextBlock(text.strip("\n")))
