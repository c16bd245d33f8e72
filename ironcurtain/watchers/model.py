"""Watchers, and what happens to them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from ironcurtain.home.sections import Budget

SHELL = "shell"
"""The agent of watchers that run in ``ironcurtain shell``, and not in the daemon."""


class Kind(StrEnum):
    """The kinds of triggers."""

    FILE_CHANGE = "file_change"
    SCREEN_CHANGE = "screen_change"
    AUDIO_EVENT = "audio_event"
    STDIN = "stdin"
    SCHEDULE = "schedule"


class Ask(StrEnum):
    """Who answers what the policy escalates: nobody, so that it is denied, or a person at a console."""

    POLICY = "policy"
    CONSOLE = "console"


class Watcher(msgspec.Struct, frozen=True):
    """
    One table of ``watchers.toml``.

    :param path: absolute; the file or directory to watch; ``None`` for other triggers.
    :param pattern: a glob: of a ``file_change``, for paths below the directory; else for a part of what is seen, heard
        or read. Empty: everything.
    :param app: the application to look at or to hear; empty: any.
    :param every: seconds between runs of a ``schedule``; 0: it has ``cron``.
    :param cron: five fields, as :mod:`~ironcurtain.watchers.cron` reads them; empty: it has ``every``.
    :param agent: a kind of session, or :data:`SHELL`.
    :param workspace: for the agent; ``None``: a fresh one for each run.
    :param debounce: seconds without an event before it runs.
    :param max_per_hour: maximum number of runs in an hour.
    :param budget: of one run, besides the limits of ``config.toml``.
    :param on: the host of the fleet that runs it, or :data:`~ironcurtain.home.host_numbers.ANY_HOST`; empty: this one.
    :param labels: that the host has to have.
    """

    name: str
    trigger: Kind
    instruction: str
    path: Path | None = None
    pattern: str = ""
    app: str = ""
    every: float = 0.0
    cron: str = ""
    agent: str = "builtin"
    workspace: Path | None = None
    debounce: float = 2.0
    max_per_hour: int = 6
    budget: Budget = msgspec.field(default_factory=Budget)
    ask: Ask = Ask.POLICY
    on: str = ""
    labels: tuple[str, ...] = ()

    @property
    def principal(self) -> str:
        """The name of who starts its sessions, in audit logs."""
        return f"watcher:{self.name}"


class Event(msgspec.Struct, frozen=True):
    """
    Something that may set a watcher off.

    :param data: what happened, for the model and for people. It comes from others and is never an instruction: the
        values are escaped with :func:`~ironcurtain.text.display.one_line` or its like, and of bounded length.
    :param digest: SHA-256 in hexadecimal of the state that was found; equal states are one event. Empty: each event is
        one of its own.
    """

    data: Mapping[str, str]
    digest: str = ""
