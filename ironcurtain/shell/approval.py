"""
The tables ``[approval]`` of ``policy.toml``: what the agent of a shell may do without asking.

``docs/reference/policy.rst`` describes them. A table that is not there asks about everything, unless ``default`` in
``[approval]`` says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ironcurtain.command_rules import Pattern, PatternError, parse_pattern
from ironcurtain.home.faults import wrong
from ironcurtain.home.lines import Place
from ironcurtain.home.structured import convert
from ironcurtain.policy.approval_tables import DECISIONS, AudioTable, Mode, Table, UiTable, VisionTable
from ironcurtain.policy.lists import pattern_problem
from ironcurtain.policy.named_paths import path_problem
from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.policy.verdict import Decision

_GLOB_START = re.compile(r"(?:/|~(?:/|$)|\$(?:CWD|HOME)(?:/|$))")


class ShellTable(Table, frozen=True):
    """
    ``[approval.shell]``: which commands may run.

    :param mode: for commands that no pattern matches.
    :param deny_patterns: commands that never run.
    :param allow_patterns: commands that run without asking, whatever files or hosts they use.
    """

    mode: Mode | None = None
    deny_patterns: tuple[str, ...] = ()
    allow_patterns: tuple[str, ...] = ()


class FilesystemTable(Table, frozen=True):
    """
    ``[approval.filesystem]``: which files commands may use.

    :param mode: for files that no list has. With ``allow``, a list that is there limits it: other files are asked.
    :param read: globs of files that may be read.
    :param write: globs of files that may be written and read.
    :param deny: globs of files that may not be used at all.
    """

    mode: Mode | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class NetworkTable(Table, frozen=True):
    """
    ``[approval.network]``: which hosts commands may reach.

    :param mode: for hosts that are not on the list. With ``allow``, a list that is there limits it: others are asked.
    :param allow_hosts: names of hosts, or ``*.`` and the end of a name.
    """

    mode: Mode | None = None
    allow_hosts: tuple[str, ...] = ()


class ApprovalTables(Table, frozen=True):
    """All tables, as written."""

    default: Mode = "ask"
    shell: ShellTable = ShellTable()
    filesystem: FilesystemTable = FilesystemTable()
    network: NetworkTable = NetworkTable()
    vision: VisionTable = VisionTable()
    audio: AudioTable = AudioTable()
    ui: UiTable = UiTable()


class Approval(msgspec.Struct, frozen=True):
    """
    The tables, ready for :class:`~ironcurtain.shell.gate.CommandGate`.

    :param tables: as written.
    :param deny: the deny patterns of ``[approval.shell]``.
    :param allow: its allow patterns.
    """

    tables: ApprovalTables = msgspec.field(default_factory=ApprovalTables)
    deny: tuple[Pattern, ...] = ()
    allow: tuple[Pattern, ...] = ()

    def mode(self, table: Literal["shell", "filesystem", "network"]) -> tuple[Decision, str]:
        """:returns: what holds where a table says nothing more special, and the field that says so."""
        own: Mode | None = getattr(self.tables, table).mode
        name = "approval.default" if own is None else f"approval.{table}.mode"
        return DECISIONS[own or self.tables.default], name


def read_approval(tables: Mapping[str, Any], source: str, home: str, text: str = "") -> Approval:
    """
    :param tables: :attr:`Policy.approval <ironcurtain.policy.rules.Policy.approval>`.
    :param source: the name of the file, for messages.
    :param home: absolute path of the user's home directory.
    :param text: the text of the file, to find lines for messages.
    :raises ConfigurationError: a table is wrong.
    """
    read: ApprovalTables = convert(source, dict(tables), ApprovalTables, text, ("approval",))

    def patterns(name: str) -> tuple[Pattern, ...]:
        found: list[Pattern] = []
        for index, pattern in enumerate(getattr(read.shell, name)):
            try:
                found.append(parse_pattern(pattern, home))
            except PatternError as e:
                raise wrong(source, str(e), text, ("approval", "shell", name, index)) from None
        return tuple(found)

    approval = Approval(read, patterns("deny_patterns"), patterns("allow_patterns"))
    for place, detail in (*_wrong_globs(read.filesystem), *_wrong_hosts(read.network)):
        raise wrong(source, detail, text, place)
    return approval


def _wrong_globs(table: FilesystemTable) -> list[tuple[Place, str]]:
    return [
        (("approval", "filesystem", name, index), problem)
        for name in ("read", "write", "deny")
        for index, glob in enumerate(getattr(table, name))
        if (problem := path_problem(glob) or _wrong_start(glob))
    ]


def _wrong_start(glob: str) -> str:
    if f"{glob}/".startswith(f"{AGENT_WORKSPACE}/"):
        return f"{AGENT_WORKSPACE} is known in rules only: write $CWD"
    return "" if _GLOB_START.match(glob) else "begin it with /, ~, $HOME or $CWD"


def _wrong_hosts(table: NetworkTable) -> list[tuple[Place, str]]:
    return [
        (("approval", "network", "allow_hosts", index), problem)
        for index, host in enumerate(table.allow_hosts)
        if (problem := pattern_problem(host))
    ]
