"""Which command an iteration runs on this machine, and how it gets the prompt. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironcurtain.errors import UsageError
from ironcurtain.loop.mode import Mode

PROMPT = "{prompt}"
"""Stands for the prompt in a command; where it does not stand, see :func:`prepare`."""

ARGUMENT_LIMIT = 128 * 1024 - 1
"""Most bytes of one argument (Linux: MAX_ARG_STRLEN, with the NUL at the end)."""

BACKENDS: Mapping[str, Mapping[Mode, tuple[str, ...]]] = {
    "claude": {
        Mode.HEADLESS: ("claude", "--dangerously-skip-permissions", "--print"),
        Mode.INTERACTIVE: ("claude", "--", PROMPT),
        Mode.OBSERVE: ("claude", "--dangerously-skip-permissions", "--print", "--", PROMPT),
    },
    "codex": {
        Mode.HEADLESS: ("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"),
        Mode.INTERACTIVE: ("codex", "--", PROMPT),
        Mode.OBSERVE: (
            *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *("--", PROMPT),
        ),
    },
    "gemini": {
        Mode.HEADLESS: ("gemini", "--yolo"),
        Mode.INTERACTIVE: ("gemini", f"--prompt-interactive={PROMPT}"),
        Mode.OBSERVE: ("gemini", "--yolo", f"--prompt={PROMPT}"),
    },
    "opencode": {
        Mode.HEADLESS: ("opencode", "run"),
        Mode.INTERACTIVE: ("opencode", f"--prompt={PROMPT}"),
        Mode.OBSERVE: ("opencode", "run", "--", PROMPT),
    },
}
"""
The known ones. Where nobody can answer, they are told to ask nobody; where somebody sits at the terminal, they ask.
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """
    A command with its prompt.

    :param stdin: for its standard input, where that is a pipe.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""


def known(backend: str, mode: Mode) -> tuple[str, ...]:
    """
    :returns: the command of a known backend.
    :raises UsageError: it is not known.
    """
    if backend not in BACKENDS:
        raise UsageError(f"there is no backend {backend!r}: choose one of {', '.join(BACKENDS)}, or give a command")
    return BACKENDS[backend][mode]


def prepare(command: Sequence[str], mode: Mode, prompt: str) -> Prepared:
    """
    Give a command its prompt: in place of ``{prompt}``; else on standard input, and in a terminal as the last argument.

    :raises UsageError: the prompt cannot be an argument.
    """
    if not any(PROMPT in word for word in command):
        if mode is Mode.HEADLESS:
            return Prepared(tuple(command), prompt.encode("utf-8", "replace"))
        command = (*command, PROMPT)
    if "\0" in prompt or len(prompt.encode("utf-8", "replace")) > ARGUMENT_LIMIT:
        raise UsageError(
            "the prompt is too long for an argument, or holds a NUL byte: let it name a file, or use --no-pty"
        )
    return Prepared(tuple(word.replace(PROMPT, prompt) for word in command))
