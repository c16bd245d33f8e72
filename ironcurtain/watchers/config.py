"""
Read ``watchers.toml``: a file of the person's home, closed to others, that nothing in a workspace can set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.files.private import read_private
from ironcurtain.home.agent_names import listed
from ironcurtain.home.faults import wrong
from ironcurtain.home.fleet_section import Label
from ironcurtain.home.host_numbers import ANY_HOST
from ironcurtain.home.parsing import parse_toml
from ironcurtain.home.sections import Budget, Section
from ironcurtain.home.structured import check_version, convert
from ironcurtain.home.user_paths import user_path
from ironcurtain.servers.files.globs import matcher
from ironcurtain.text.decoding import decode_text
from ironcurtain.text.quantities import read_age
from ironcurtain.watchers.cron import Cron
from ironcurtain.watchers.model import SHELL, Ask, Kind, Watcher
from ironcurtain.watchers.record import MOST_RUNS

FORMAT_VERSION = 1
"""Format version of ``watchers.toml``; newer ones are refused."""

FILE_LIMIT = 1024 * 1024
"""Maximum size in bytes of the file."""

MOST_WATCHERS = 100
"""Maximum number of watchers."""

INTERVALS = "10s", "366d"
"""The shortest and the longest interval of a schedule."""

DEBOUNCES = "0s", "1h"
"""The shortest and the longest debounce."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
"""The names of watchers are also names of files and parts of commands."""

_OF_TRIGGER: Mapping[Kind, tuple[str, ...]] = {
    Kind.FILE_CHANGE: ("path", "pattern"),
    Kind.SCREEN_CHANGE: ("app", "pattern"),
    Kind.AUDIO_EVENT: ("app", "pattern"),
    Kind.STDIN: ("pattern",),
    Kind.SCHEDULE: ("every", "cron"),
}
"""The settings that belong to a trigger."""


class _Table(Section, frozen=True):
    trigger: Kind
    instruction: Annotated[str, msgspec.Meta(max_length=20_000)]
    path: str = ""
    pattern: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    app: Annotated[str, msgspec.Meta(max_length=200)] = ""
    every: str = ""
    cron: str = ""
    agent: str = "builtin"
    workspace: str = ""
    debounce: str = "2s"
    max_per_hour: Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)] = 6
    budget: Budget = Budget()
    ask: Ask = Ask.POLICY
    on: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{0,63}\Z")] = ""
    labels: Annotated[tuple[Label, ...], msgspec.Meta(max_length=10)] = ()


class _File(Section, frozen=True):
    version: int = FORMAT_VERSION
    watchers: Annotated[dict[str, _Table], msgspec.Meta(max_length=MOST_WATCHERS)] = msgspec.field(default_factory=dict)


def load_watchers(path: Path, environ: Mapping[str, str], agents: Callable[[], list[str]]) -> tuple[Watcher, ...]:
    """
    :param path: the file; it need not exist.
    :param environ: the environment with the person's ``HOME``.
    :param agents: returns the names of the agents that could run, besides :data:`~ironcurtain.watchers.model.SHELL`.
    :raises ConfigurationError: it is open to others, or wrong; the message names file, line and field.
    """
    if not path.is_symlink() and not path.exists():
        return ()
    text = decode_text(str(path), read_private(path, FILE_LIMIT))
    return read_watchers(text, str(path), environ, agents)


def read_watchers(
    text: str, source: str, environ: Mapping[str, str], agents: Callable[[], list[str]]
) -> tuple[Watcher, ...]:
    """
    :param text: TOML.
    :param source: the file's name, for messages.
    :raises ConfigurationError: as for :func:`load_watchers`.
    """
    parsed = parse_toml(source, text)
    check_version(source, parsed, FORMAT_VERSION, text)
    tables: dict[str, _Table] = convert(source, parsed, _File, text).watchers
    made = []
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            detail = "choose a name of up to 40 lower case letters, digits and hyphens, with no hyphen at its ends"
            raise wrong(source, detail, text, ("watchers", name))
        for field, detail in _faults(table, parsed["watchers"][name], agents):
            raise wrong(source, detail, text, ("watchers", name, field))
        try:
            made.append(_watcher(name, table, environ))
        except _WrongField as e:
            raise wrong(source, e.detail, text, ("watchers", name, e.field)) from None
    return tuple(made)


class _WrongField(Exception):
    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field, self.detail = field, detail


def _faults(table: _Table, given: Mapping[str, Any], agents: Callable[[], list[str]]) -> Iterator[tuple[str, str]]:
    """:returns: what is wrong with a table although each of its values has the right type."""
    kind, fits = table.trigger, _OF_TRIGGER[table.trigger]
    for field in ("path", "pattern", "app", "every", "cron"):
        if field in given and field not in fits:
            yield field, f'does not go with trigger = "{kind}": {_listed(fits)} would'
    if not table.instruction.strip():
        yield "instruction", "is empty: say what the agent is to do"
    if kind is Kind.FILE_CHANGE and not table.path:
        yield "path", "is missing: the file or directory to watch"
    if kind is Kind.SCHEDULE and bool(table.every) == bool(table.cron):
        yield "every", 'give either every, such as "10m", or cron, such as "0 9 * * 1-5"'
    if table.agent == SHELL:
        if kind is Kind.STDIN:
            yield "agent", "a shell does not read its standard input for a watcher: choose another agent"
        for field in ("workspace", "ask", "budget", "on", "labels"):
            if field in given:
                yield field, f'does not go with agent = "{SHELL}": the shell has its own, and you are asked there'
        return
    yield from _placement_faults(table, given)
    if table.agent not in (known := agents()):
        yield "agent", f"there is no agent {table.agent!r}: choose one of {listed(sorted((SHELL, *known)))}"


def _placement_faults(table: _Table, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in ("on", "labels"):
        if field in given and table.trigger is Kind.STDIN:
            yield field, 'does not go with trigger = "stdin": the command that reads it runs it'
        if field in given and table.workspace:
            yield field, "does not go with workspace: nothing of this machine is copied to another"
    if table.labels and table.on not in ("", ANY_HOST):
        yield "labels", f'choose the machine: omit on, or write on = "{ANY_HOST}"'


def _listed(fields: tuple[str, ...]) -> str:
    return " or ".join(fields)


def _watcher(name: str, table: _Table, environ: Mapping[str, str]) -> Watcher:
    every = _seconds("every", table.every, *INTERVALS) if table.every else 0.0
    if table.cron:
        try:
            Cron.read(table.cron)
        except ValueError as e:
            raise _WrongField("cron", str(e)) from None
    if table.pattern and table.trigger is Kind.FILE_CHANGE:
        try:
            matcher(table.pattern)
        except ValueError as e:
            raise _WrongField("pattern", str(e)) from None
    return Watcher(
        name=name,
        trigger=table.trigger,
        instruction=table.instruction.strip(),
        path=_path("path", table.path, environ),
        pattern=table.pattern,
        app=table.app,
        every=every,
        cron=table.cron,
        agent=table.agent,
        workspace=_path("workspace", table.workspace, environ),
        debounce=_seconds("debounce", table.debounce, *DEBOUNCES),
        max_per_hour=table.max_per_hour,
        budget=table.budget,
        ask=table.ask,
        on=table.on or (ANY_HOST if table.labels else ""),
        labels=table.labels,
    )


def _path(field: str, text: str, environ: Mapping[str, str]) -> Path | None:
    if not text:
        return None
    try:
        path = Path(user_path(text, environ))
    except UsageError as e:
        raise _WrongField(field, str(e)) from None
    if not path.is_absolute():
        raise _WrongField(field, f"must begin with / or ~/, not be {text!r}")
    if "\0" in text:
        raise _WrongField(field, "has a character that no path can have: \\u0000")
    return path


def _seconds(field: str, text: str, least: str, most: str) -> float:
    try:
        seconds = read_age(text)
    except UsageError as e:
        raise _WrongField(field, str(e)) from None
    if not read_age(least) <= seconds <= read_age(most):
        raise _WrongField(field, f"must be from {least} to {most}, not {text}")
    return seconds
