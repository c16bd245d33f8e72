"""The values that go into and come out of code mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """
    The limits of one session's programs; times leave out waiting for tools, which may take days.

    :param run_seconds: computing time of one program.
    :param memory_bytes: all that the session's variables may take.
    :param recursion: depth of calls.
    :param calls: tool calls (and imports, and sleeps) between two losses of the variables.
    :param sleep_seconds: sum of all sleeps, likewise.
    :param code_characters: length of one program.
    :param result_bytes: what is kept of output, of a value and of an error, each; the head and the tail of it.
    :param tool_result_bytes: longest result of a tool that a program is given; at most an eighth of the memory, as a
        value takes several times its size as JSON.
    """

    run_seconds: float = 2.0
    memory_bytes: int = 64_000_000
    recursion: int = 500
    calls: int = 5000
    sleep_seconds: float = 60.0
    code_characters: int = 200_000
    result_bytes: int = 100_000
    tool_result_bytes: int = 8_000_000


@dataclass(frozen=True, slots=True)
class Tool:
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


@dataclass(frozen=True, slots=True)
class ToolReply:
    """
    What came of a tool call.

    :param value: a JSON value, or text; without meaning if ``error`` is set.
    :param error: why there is no value, for the program to raise and the model to read.
    :param denied: the call was not permitted; the program then sees ``PermissionError``, else ``RuntimeError``.
    """

    value: Any
    error: str | None = None
    denied: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """
    What came of running a program.

    :param output: what it printed, bounded.
    :param value: its last expression's value: a string as it is, else as Python writes it; ``None`` if there was none.
    :param error: the traceback, or why it was not run at all.
    :param variables_lost: what earlier programs (and this one) defined is gone; the next one starts afresh.
    :param left_out: how many bytes of output, value and error were left out, as they were too long.
    """

    output: str
    value: str | None
    error: str | None
    variables_lost: bool
    left_out: int = 0
