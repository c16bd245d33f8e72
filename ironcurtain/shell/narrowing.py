"""Agents that agents start may do no more than those above them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ironcurtain.command_rules import Risk
from ironcurtain.policy.verdict import SEVERITY, Decision, Verdict
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.inheritance import AgentPolicies
from ironcurtain.shell.surroundings import ShellSurroundings


class NarrowedGate:
    """
    Judges by several gates: the most severe verdict holds.

    :param own: by the policy of this agent.
    :param above: by those of the agents above it.
    """

    def __init__(self, own: CommandGate, above: Sequence[CommandGate]) -> None:
        self._own, self._above = own, tuple(above)

    @classmethod
    def of(cls, around: ShellSurroundings, policies: AgentPolicies, shell: str) -> NarrowedGate:
        """
        :param policies: of this agent and those above it.
        :param shell: ``bash``, ``zsh``, ``fish`` or another.
        :raises ConfigurationError: a policy is wrong.
        """
        policy, directory = around.policy, around.options.directory

        def gate(tables: Mapping[str, Any], source: str) -> CommandGate:
            approval = read_approval(tables, source, around.home)
            return CommandGate(approval, around.protected, around.home, os.path.realpath, directory, shell)

        others = [tables for tables in policies.tables if tables != policy.approval]
        return cls(gate(policy.approval, policy.source), [gate(tables, "the policy above") for tables in others])

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
