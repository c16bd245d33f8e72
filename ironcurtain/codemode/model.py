"""The values that code mode takes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ironcurtain.llm.model import ImageBlock


class CodeLimits(msgspec.Struct, frozen=True):
    """
    The limits of one session's programs. Times exclude waiting for tools, which can take days.

    :param run_seconds: computing time of one program.
    :param memory_bytes: memory of the session's variables.
    :param recursion: depth of calls.
    :param calls: tool calls (and imports, and sleeps) between two losses of the variables.
    :param sleep_seconds: sum of all sleeps, likewise.
    :param code_characters: length of one program.
    :param result_bytes: bytes kept of output, of a value and of an error, each; the beginning and the end of it.
    :param tool_result_bytes: maximum size of a tool's result; at most an eighth of the memory, since a value takes
        several times its size as JSON.
    """

    run_seconds: float = 2.0
    memory_bytes: int = 64_000_000
    recursion: int = 500
    calls: int = 5000
    sleep_seconds: float = 60.0
    code_characters: int = 200_000
    result_bytes: int = 100_000
    tool_result_bytes: int = 8_000_000


class Tool(msgspec.Struct, frozen=True):
    """
    A tool that programs can call.

    :param server: the name of the MCP server that has it.
    :param name: its name there.
    :param schema: the JSON schema of its arguments.
    """

    server: str
    name: str
    description: str
    schema: Mapping[str, Any]


class ToolReply(msgspec.Struct, frozen=True):
    """
    The result of a tool call.

    :param value: a JSON value, or text, or a picture; or a list of these. Meaningless if ``error`` is set.
    :param error: why there is no value: raised in the program, and read by the model.
    :param denied: the call was not permitted; the program gets ``PermissionError``, else ``RuntimeError``.
    """

    value: Any
    error: str | None = None
    denied: bool = False


class RunResult(msgspec.Struct, frozen=True):
    """
    The result of a program.

    :param output: its printed output, bounded.
    :param value: the value of its last expression: a string unchanged, else its ``repr``; ``None`` if there was none.
    :param error: the traceback, or why it was not run.
    :param variables_lost: whether the variables of this and earlier programs are lost.
    :param left_out: number of bytes cut from output, value and error.
    :param shown: the pictures that it showed.
    """

    output: str
    value: str | None
    error: str | None
    variables_lost: bool
    left_out: int = 0
    shown: tuple[ImageBlock, ...] = ()
