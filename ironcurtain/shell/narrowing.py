"""
Agents that agents start may do no more than those above them.

The kernel says which processes are above this one, which no variable changes, and each agent of a shell leaves its
tables in its session's directory, which is protected. Only those of agents on other machines come as a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ironcurtain.command_rules import Risk
from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionRegistry, read_small_file
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.policy.verdict import SEVERITY, Decision, Verdict
from ironcurtain.process.identity import processes_above
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.inheritance import SIZE_LIMIT, AgentPolicies, policies_in

DEEPEST_AGENT = 8
"""How many agents may be above one."""

KIND = "shell"
"""Of sessions whose agents leave their tables."""


def policies_above(home: Home, environ: Mapping[str, str]) -> AgentPolicies:
    """
    :param environ: of this process, which an agent on another machine may have passed on.
    :returns: what the agents may do that are above this process.
    :raises ConfigurationError: one is there, and its tables cannot be read.
    """
    found = policies_in(environ)
    agents = {entry.pid: entry for entry in SessionRegistry(home.registry).here() if entry.kind == KIND}
    for pid in processes_above():
        if pid in agents:
            return _read(home.session(agents[pid].session_id)).merged(found)
    return found


def leave_policies(paths: SessionPaths, policies: AgentPolicies) -> None:
    """
    Leave them for agents that this one starts.

    :raises ConfigurationError: the file cannot be written.
    """
    try:
        write_atomically(paths.agent_policies, msgspec.json.encode(policies))
    except OSError as e:
        raise ConfigurationError(str(paths.agent_policies), f"cannot be written: {e.strerror}") from e


def _read(paths: SessionPaths) -> AgentPolicies:
    path = paths.agent_policies
    try:
        return msgspec.json.decode(read_small_file(path, SIZE_LIMIT), type=AgentPolicies)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as e:
        why = f"what the agent above this one may do cannot be read, so that this one does not start: {e}"
        raise ConfigurationError(str(path), why) from e


class NarrowedGate:
    """
    Judges by several gates: the most severe verdict holds.

    :param own: by the policy of this agent.
    :param above: by those of the agents above it.
    """

    def __init__(self, own: CommandGate, above: Sequence[CommandGate]) -> None:
        self._own, self._above = own, tuple(above)

    def denied(self, command: str, directory: str) -> Verdict | None:
        """:returns: the verdict if nothing can allow the command."""
        if (found := self._own.denied(command, directory)) is not None:
            return found
        denials = (gate.denied(command, directory) for gate in self._above)
        return next((_inherited(each) for each in denials if each is not None), None)

    def judged(self, command: str, directory: str) -> Verdict:
        """:returns: the most severe verdict, by the rules of all that ask."""
        return self._most_severe(lambda gate: gate.judged(command, directory))

    def written(self, path: str, directory: str, reads: bool) -> Verdict:
        """:returns: the most severe verdict about a file: see :meth:`CommandGate.written`."""
        return self._most_severe(lambda gate: gate.written(path, directory, reads))

    def risk_written(self, path: str, directory: str) -> Risk:
        """:returns: how severe it can be to write a file."""
        return self._own.risk_written(path, directory)

    @property
    def narrows(self) -> bool:
        """Whether there are agents above this one, whose tables hold, too."""
        return bool(self._above)

    def _most_severe(self, judge: Callable[[CommandGate], Verdict]) -> Verdict:
        verdicts = [judge(self._own), *(_inherited(judge(gate)) for gate in self._above)]
        found = max(verdicts, key=lambda verdict: SEVERITY[verdict.decision])
        asking = tuple(dict.fromkeys(rule for verdict in verdicts for rule in verdict.asking))
        return msgspec.structs.replace(found, asking=asking if found.decision is Decision.ESCALATE else ())

    def ran(self, command: str) -> None:
        """:param command: one that ran, which may have changed what others mean."""
        self._own.ran(command)

    def risk(self, command: str, directory: str) -> Risk:
        """:returns: how severe the effects of a command can be."""
        return self._own.risk(command, directory)


def _inherited(verdict: Verdict) -> Verdict:
    return msgspec.structs.replace(verdict, reason=f"the agent that started this one: {verdict.reason}")
