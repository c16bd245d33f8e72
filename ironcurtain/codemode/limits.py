"""How much a program may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
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
