"""
The registry of agents: those of IronCurtain, and those of other packages.

A package adds an agent with an entry point of the group :data:`GROUP`. The entry point's name is the agent's id; its
object is the adapter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata

import msgspec

from ironcurtain.agents.adapter import Adapter
from ironcurtain.agents.claude_code import ClaudeCode
from ironcurtain.agents.codex import Codex
from ironcurtain.agents.gemini import Gemini
from ironcurtain.agents.goose import Goose
from ironcurtain.agents.opencode import OpenCode
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.agent_names import listed

GROUP = "ironcurtain.agents"
"""Entry point group for agents of other packages."""

BUILT_IN: tuple[Adapter, ...] = (ClaudeCode(), Codex(), Gemini(), Goose(), OpenCode())
"""The agents of IronCurtain."""

_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")
_TEXTS = ("id", "display_name", "image")
_METHODS = ("environment", "files", "turn", "screen", "dialogue")


class Listed(msgspec.Struct, frozen=True):
    """
    One agent, for a list that people read.

    :ivar problem: why it cannot be used, empty if it can; then only the id is known.
    """

    id: str
    display_name: str = ""
    providers: tuple[str, ...] = ()
    image: str = ""
    supports_pty: bool = False
    problem: str = ""


class AgentRegistry:
    """
    All agents by id. Adapters of other packages are imported only when needed.

    :param entry_points: of the group :data:`GROUP`.
    :raises ConfigurationError: two adapters have the same id. A package must not replace an existing agent.
    """

    def __init__(self, entry_points: Iterable[metadata.EntryPoint] = ()) -> None:
        self._built_in = {adapter.id: adapter for adapter in BUILT_IN}
        self._brought: dict[str, metadata.EntryPoint] = {}
        for entry in entry_points:
            if entry.name in self._built_in or entry.name in self._brought:
                first = self._brought.get(entry.name)
                owner = _source(first) if first else "IronCurtain itself"
                raise ConfigurationError(_source(entry), f"the agent {entry.name} already exists, from {owner}")
            self._brought[entry.name] = entry

    @property
    def names(self) -> list[str]:
        """The ids of all agents, sorted."""
        return sorted((*self._built_in, *self._brought))

    def find(self, name: str) -> Adapter:
        """
        :raises UsageError: there is no such agent; the message lists the agents.
        :raises ConfigurationError: it belongs to another package, and is not an adapter.
        """
        if name in self._built_in:
            return self._built_in[name]
        if name not in self._brought:
            raise UsageError(f"there is no agent {name!r}; choose one of {listed(self.names)}")
        return _load(self._brought[name])

    def listing(self) -> list[Listed]:
        """:returns: every agent, including unusable ones."""
        return [self._listed(name) for name in self.names]

    def _listed(self, name: str) -> Listed:
        try:
            a = self.find(name)
        except ConfigurationError as e:
            return Listed(name, problem=str(e))
        return Listed(a.id, a.display_name, a.providers, a.image, a.supports_pty)


def installed() -> AgentRegistry:
    """
    :returns: the agents of this installation.
    :raises ConfigurationError: two adapters have the same id.
    """
    return AgentRegistry(metadata.entry_points(group=GROUP))


def _source(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name if entry.dist else entry.value} ({GROUP}: {entry.name} = {entry.value})"


def _load(entry: metadata.EntryPoint) -> Adapter:
    try:
        adapter = entry.load()
    except Exception as e:
        # Importing runs code of the other package, which can raise anything.
        raise ConfigurationError(_source(entry), f"cannot be imported: {type(e).__name__}: {e}") from e
    if problem := _problem(adapter, entry.name):
        raise ConfigurationError(_source(entry), problem)
    return adapter  # type: ignore[no-any-return]


def _problem(adapter: object, name: str) -> str:
    """:returns: the problem of another package's adapter, empty if there is none."""
    if isinstance(adapter, type):
        return "is a class, not an instance"
    wrong = [member for member in _TEXTS if not isinstance(getattr(adapter, member, None), str)]
    wrong += [member for member in _METHODS if not callable(getattr(adapter, member, None))]
    providers = getattr(adapter, "providers", None)
    if not isinstance(providers, tuple) or not all(isinstance(provider, str) for provider in providers):
        wrong.append("providers")
    if not isinstance(getattr(adapter, "supports_pty", None), bool):
        wrong.append("supports_pty")
    if wrong:
        return f"is not an adapter: wrong or missing: {', '.join(wrong)}"
    if getattr(adapter, "id", "") != name:
        return f"has the id {getattr(adapter, 'id', '')!r}, not {name!r}"
    return "" if _ID.fullmatch(name) else "its id must be at most 40 lower-case letters, digits and hyphens"
