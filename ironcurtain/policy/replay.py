"""Judge recorded calls by another policy, and collect the verdicts that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.recorded import REFUSED_BY_SESSION, NotRecorded, RecordedCall, files_of, incomplete
from ironcurtain.policy.verdict import ToolCall, Trace, Verdict


class VerdictChange(NamedTuple):
    """A change of the verdict that calls of one tool have in common."""

    server: str
    tool: str
    decision: str
    rule: str
    new_decision: str
    new_rule: str


class ChangedCalls(msgspec.Struct):
    """
    The calls with the same change.

    :param session: where the example is from.
    :param example: the first of them.
    """

    session: str
    example: RecordedCall
    verdict: Verdict
    count: int = 0


class ReplayReport(msgspec.Struct):
    """
    What the other policy would have decided.

    :param same: number of calls with the same decision, maybe by another rule.
    :param unaffected: number of calls that the session itself refused or allowed, whatever the policy.
    :param undecided: number of calls by what their records lack.
    """

    same: int = 0
    unaffected: int = 0
    undecided: Counter[str] = msgspec.field(default_factory=Counter)
    changes: dict[VerdictChange, ChangedCalls] = msgspec.field(default_factory=dict)

    @property
    def changed(self) -> int:
        """The number of calls with another decision."""
        return sum(each.count for each in self.changes.values())


def replay(
    report: ReplayReport, session: str, calls: Iterable[RecordedCall], engine_for: Callable[[str], PolicyEngine]
) -> None:
    """
    Judge the calls of one session, and add the results to a report.

    :param session: its name in the report.
    :param engine_for: returns the engine for a workspace, made over
        :class:`~ironcurtain.policy.recorded.FormerWorkspace`.
    """
    for call in calls:
        if call.rule in REFUSED_BY_SESSION:
            report.unaffected += 1
            continue
        try:
            verdict = judge_again(engine_for, call)
        except NotRecorded as e:
            report.undecided[str(e)] += 1
            continue
        if verdict.decision == call.decision:
            report.same += 1
            continue
        change = VerdictChange(call.server, call.tool, call.decision, call.rule, verdict.decision, verdict.rule)
        report.changes.setdefault(change, ChangedCalls(session, call, verdict)).count += 1


def judge_again(engine_for: Callable[[str], PolicyEngine], call: RecordedCall, trace: Trace | None = None) -> Verdict:
    """
    :param engine_for: see :func:`replay`.
    :param trace: if given, records the steps of the evaluation.
    :raises NotRecorded: the verdict depends on something that the audit log does not contain.
    """
    if incomplete(call.arguments):
        raise NotRecorded("all of the arguments: a part was redacted or cut")
    if not call.workspace or incomplete(call.workspace):
        raise NotRecorded("the workspace")
    engine = engine_for(call.workspace)
    if engine.asks_created and not call.history.complete:
        raise NotRecorded("which files the agent created before")
    asked = ToolCall(call.server, call.tool, call.arguments)
    return engine.evaluate_assumed(asked, files=files_of(engine, call), history=call.history, trace=trace)
