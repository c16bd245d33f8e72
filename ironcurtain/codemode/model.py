"""The values that go into and come out of code mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
