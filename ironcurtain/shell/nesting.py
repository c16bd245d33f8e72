"""
Agents that agents start, on this machine: what those above leave to them, and what they use of it.

The kernel says which processes are above this one, which no variable changes. Each agent of a shell leaves its tables
and what is left of its budget in its session's directory, which is protected, and there those below it write what they
use, so that it counts whoever started them, and however they end. Agents on other machines have a variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ironcurtain.errors import ConfigurationError, SessionError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionRegistry, read_small_file
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.process.identity import processes_above
from ironcurtain.shell.inheritance import SIZE_LIMIT, AgentPolicies, least, policies_in
from ironcurtain.shell.surroundings import ShellSurroundings
from ironcurtain.shell.used_below import Used, UsedBelow

KIND: Final = "shell"
"""Of sessions whose agents leave something to those below."""

DEEPEST_AGENT: Final = 8
"""How many agents may be above one."""


class Left(msgspec.Struct, frozen=True):
    """
    What an agent leaves to those below it.

    :param policies: what they may do and use at most.
    :param works: whether it works on an instruction. If not, agents below were started by the user, who gives them
        budgets of their own.
    :param taken: bytes of what they have said to have used that are counted in it.
    """

    policies: AgentPolicies
    works: bool = False
    taken: int = 0


def agents_above(home: Home) -> tuple[SessionPaths, ...]:
    """:returns: the sessions of the agents above this process, the nearest first."""
    agents = {entry.pid: entry for entry in SessionRegistry(home.registry).here() if entry.kind == KIND}
    return tuple(home.session(agents[pid].session_id) for pid in processes_above() if pid in agents)


def policies_above(above: Sequence[SessionPaths], environ: Mapping[str, str]) -> AgentPolicies:
    """
    :param above: see :func:`agents_above`.
    :param environ: of this process, which an agent on another machine may have passed on.
    :returns: what those above leave.
    :raises ConfigurationError: that cannot be read.
    """
    policies = policies_in(environ)
    for paths in above:
        left = _left_now(paths, UsedBelow(paths.used_below))
        bound = left.policies if left.works else msgspec.structs.replace(left.policies, tokens=None, cost=None)
        policies = bound.merged(policies)
    return policies


def working(above: Sequence[SessionPaths]) -> tuple[SessionPaths, ...]:
    """
    :param above: see :func:`agents_above`.
    :returns: those that work on an instruction, so that what this one uses is for them.
    :raises ConfigurationError: it cannot be read whether they do.
    """
    return tuple(paths for paths in above if _left_now(paths, UsedBelow(paths.used_below)).works)


class Nesting:
    """
    One agent between those above and those below it.

    :param own: files of its session.
    :param above: of those above that work.
    :ivar policies: what this agent and those above it may do.
    :ivar works: whether it works on an instruction.
    """

    def __init__(self, own: SessionPaths, above: Sequence[SessionPaths], policies: AgentPolicies) -> None:
        self._own, self.policies, self._below = own, policies, UsedBelow(own.used_below)
        self._above = [(paths, UsedBelow(paths.used_below)) for paths in above]
        self._taken, self.works = 0, False
        self._left: Left | None = None

    @classmethod
    def of(cls, around: ShellSurroundings) -> Nesting:
        """
        :raises ConfigurationError: what those above leave cannot be read.
        :raises SessionError: too many agents are above this one.
        """
        core, above = around.core, agents_above(around.core.services.home)
        policies = policies_above(above, around.environ)
        if max(policies.depth, around.start.trace.depth) > DEEPEST_AGENT:
            raise SessionError("SESSION_INIT_FAILED", f"over {DEEPEST_AGENT} agents have started one another")
        return cls(core.paths, working(above), policies.joined(around.policy.approval))

    def leave(self, tokens: float | None, cost: float | None) -> None:
        """
        Let agents below know what is left.

        :raises ConfigurationError: the file cannot be written.
        """
        limits = {"tokens": least(self.policies.tokens, tokens), "cost": least(self.policies.cost, cost)}
        left = Left(msgspec.structs.replace(self.policies, **limits), self.works, self._taken)
        if left == self._left:
            return
        try:
            write_atomically(self._own.agent_policies, msgspec.json.encode(left), durable=False)
        except OSError as e:
            raise ConfigurationError(str(self._own.agent_policies), f"cannot be written: {e.strerror}") from e
        self._left = left

    def taken(self) -> list[Used]:
        """
        :returns: what agents below have used since the last look.
        :raises SessionError: that cannot be read.
        """
        sums = self._below.since(self._taken)
        self._taken = self._below.end
        return [each for each in sums if each.counted or each.cost]

    def use(self, used: Used) -> None:
        """
        Say to all above what this agent has used.

        :raises SessionError: they cannot be told, so that nothing more may be used.
        """
        for _, below in self._above:
            try:
                below.append(used)
            except OSError as e:
                why = f"what is used here cannot be counted for the agent that started this one: {e.strerror}"
                raise SessionError("MESSAGE_FAILED", why) from e

    def require(self) -> None:
        """:raises SessionError: nothing is left of the budget of an agent above, or nobody knows what is."""
        for paths, below in self._above:
            try:
                left = _left_now(paths, below).policies
            except ConfigurationError as e:
                raise SessionError("MESSAGE_FAILED", str(e)) from e
            if 0 in (left.tokens, left.cost):
                why = "the budget of the agent that started this one is used up: go on there, or raise its limit"
                raise SessionError("MESSAGE_FAILED", why)


def _left_now(paths: SessionPaths, below: UsedBelow) -> Left:
    path = paths.agent_policies
    try:
        left = msgspec.json.decode(read_small_file(path, SIZE_LIMIT), type=Left)
        priced, unpriced = below.since(left.taken)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, SessionError) as e:
        why = f"what the agent above this one leaves cannot be read, so that this one does nothing: {e}"
        raise ConfigurationError(str(path), why) from e
    tokens = _less(left.policies.tokens, priced.counted + unpriced.counted)
    cost = _less(left.policies.cost, priced.cost or 0.0)
    return msgspec.structs.replace(left, policies=msgspec.structs.replace(left.policies, tokens=tokens, cost=cost))


def _less(limit: float | None, used: float) -> float | None:
    return None if limit is None else max(limit - used, 0.0)
