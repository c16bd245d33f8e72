"""
What the agents above one may do and use, as a variable of the environment has it, which ssh takes to other machines.

OpenSSH passes on variables with names like this one where ``SendEnv LC_*`` and ``AcceptEnv LC_*`` are set, as Debian,
Ubuntu and Fedora do. What it says only narrows, so that nobody gains by writing one. On one machine, the processes say
it too (:mod:`~ironcurtain.shell.nesting`), which no variable changes.
"""

from __future__ import annotations

import zlib
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import read_configuration

VARIABLE = "LC_IRONCURTAIN_POLICY"

SIZE_LIMIT = 4 * 1024 * 1024
"""Most bytes of the tables of all agents."""

VARIABLE_LIMIT = 32 * 1024
"""Longest value that is passed on: a quarter of what Linux lets a variable have (MAX_ARG_STRLEN)."""

_TOO_LONG = "too-long"


class AgentPolicies(msgspec.Struct, frozen=True):
    """
    What the agents above one may do, or one and those above it.

    :param tables: ``[approval]`` of each; equal ones once.
    :param depth: how many agents these are.
    :param tokens: that are left for all below them, as is ``cost`` in US dollars; ``None``: there is no limit.
    """

    tables: tuple[dict[str, Any], ...] = ()
    depth: int = 0
    tokens: float | None = None
    cost: float | None = None

    def joined(self, tables: Mapping[str, Any]) -> AgentPolicies:
        """:returns: with one more agent, which has these tables."""
        return msgspec.structs.replace(self.merged(AgentPolicies((dict(tables),))), depth=self.depth + 1)

    def merged(self, other: AgentPolicies) -> AgentPolicies:
        """:returns: the tables of both, which may be the same agents."""
        more = tuple(tables for tables in other.tables if tables not in self.tables)
        tokens, cost = least(self.tokens, other.tokens), least(self.cost, other.cost)
        return AgentPolicies((*self.tables, *more), max(self.depth, other.depth), tokens, cost)


def least(*limits: float | None) -> float | None:
    """:returns: the lowest of some limits; ``None``: there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


def policies_in(environ: Mapping[str, str]) -> AgentPolicies:
    """
    :returns: what a variable says that :func:`as_variable` made.
    :raises ConfigurationError: it cannot be read.
    """
    if not (value := environ.get(VARIABLE)):
        return AgentPolicies()
    try:
        packed = zlib.decompressobj()
        data = packed.decompress(a2b_base64(value, strict_mode=True), SIZE_LIMIT)
        if not packed.eof:
            raise ValueError("it is cut off or too long")
        return msgspec.json.decode(data, type=AgentPolicies)
    except (Base64Error, ValueError, zlib.error, msgspec.DecodeError, RecursionError) as e:
        why = f"what the agents above this one may do cannot be read ({e}): unset it if no agent started this one"
        raise ConfigurationError(f"environment variable {VARIABLE}", why) from e


def as_variable(policies: AgentPolicies) -> str:
    """:returns: a value of :data:`VARIABLE`; one that nobody can read if it were too long."""
    value = b2a_base64(zlib.compress(msgspec.json.encode(policies)), newline=False).decode()
    return value if len(value) <= VARIABLE_LIMIT else _TOO_LONG


def unchecked_approval(policy: Path) -> dict[str, Any]:
    """
    :param policy: a file.
    :returns: its ``[approval]``, as it is; empty if it has none. A wrong file is reported by who checks it.
    """
    try:
        text = read_configuration(policy)
    except ConfigurationError:
        return {}
    if text is None or policy.suffix == ".json":
        return {}
    from ironcurtain.home.parsing import parse_toml

    try:
        found = parse_toml(str(policy), text).get("approval")
    except ConfigurationError:
        return {}
    return found if isinstance(found, dict) else {}
