"""Explain a verdict step by step. The engine itself records the steps while it judges."""

from __future__ import annotations

from typing import Any

import msgspec

from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.verdict import Step, ToolCall, Trace, Verdict


class Explanation(msgspec.Struct, frozen=True):
    """
    A verdict and the steps that led to it, in order.

    :param steps: the checks that ran, and for each role the rules that apply to it, with the reason if they did not
        match.
    """

    call: ToolCall
    verdict: Verdict
    steps: tuple[Step, ...]

    def data(self) -> dict[str, Any]:
        """:returns: the explanation as JSON values."""
        verdict = self.verdict
        return {
            "server": self.call.server,
            "tool": self.call.tool,
            "arguments": dict(self.call.arguments),
            "decision": str(verdict.decision),
            "rule": verdict.rule,
            "reason": verdict.reason,
            "approvals": verdict.approvals,
            "forwarded": verdict.arguments,
            "resources": [{"role": r.role, "argument": r.argument, "value": r.value} for r in verdict.resources],
            "steps": [
                {"check": s.check, "outcome": s.outcome, "detail": s.detail, "role": s.role, "rule": s.rule}
                for s in self.steps
            ],
        }

    def text(self) -> str:
        """:returns: several lines of text. They quote the agent's text unescaped: escape them before printing."""
        verdict = self.verdict
        lines = [f"{self.call.server} {self.call.tool}"]
        lines += [f"  {r.argument} is judged as {r.role}: {r.value}" for r in verdict.resources]
        lines += [_line(step) for step in self.steps]
        changed = {k: v for k, v in verdict.arguments.items() if self.call.arguments.get(k) != v}
        lines += [f"  {name} is forwarded as {value}" for name, value in changed.items()]
        lines += [f"  needs the approvals of {verdict.approvals} people"] if verdict.approvals > 1 else []
        return "\n".join([*lines, f"{verdict.decision} by {verdict.rule}: {verdict.reason}"])


def _line(step: Step) -> str:
    kind = "rule " if step.rule else ""
    role = f" [{step.role}]" if step.role else ""
    outcome = "does not match" if step.outcome == "no" else step.outcome
    return f"  {kind}{step.check}{role}: {outcome}{f' ({step.detail})' if step.detail else ''}"


def explain(
    engine: PolicyEngine, call: ToolCall, *, git_directory: str | None = None, history: CallHistory = NO_HISTORY
) -> Explanation:
    """
    Judge a call and explain the verdict. The tool is assumed to exist, with the arguments that its annotation names.

    :param git_directory: the working directory of the session's git server, for a call without a path.
    :param history: what happened before in the session.
    """
    trace = Trace()
    verdict = engine.evaluate_assumed(call, git_directory=git_directory, history=history, trace=trace)
    return Explanation(call, verdict, tuple(trace.steps))
