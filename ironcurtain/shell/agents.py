"""Steps that start an agent below this one, which may do no more than this one: its questions are asked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ironcurtain.command_rules import Risk
from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.llm.model import ToolSpec, ToolUse
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.hooks import AgentAction
from ironcurtain.policy.verdict import Decision, Reversal, Verdict
from ironcurtain.session.models import backends_of
from ironcurtain.shell.child_run import AGENT_TOOL, ChildRun
from ironcurtain.shell.children import checked_host, child_start, command_line, read_only, why_no_answer
from ironcurtain.shell.commands import STATUSES
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.inheritance import AgentPolicies
from ironcurtain.shell.messages import ProposedStep, StepKind, StepOutcome
from ironcurtain.shell.model import SERVER
from ironcurtain.shell.protocol import checked_instruction
from ironcurtain.shell.session_budget import SessionBudget
from ironcurtain.shell.step_policy import StepPolicy
from ironcurtain.shell.surroundings import ShellSurroundings
from ironcurtain.shell.tools import JudgedStep, StepRun, purpose_of, text_argument

_TEXTS: Final = {"type": "array", "items": {"type": "string"}}

AGENT: Final = ToolSpec(
    AGENT_TOOL,
    "Propose to give a task to another agent, in a shell of its own. It knows nothing of this conversation. It may do "
    "at most what you may, and the user is asked as for your own steps; `only` narrows that further. You get what it "
    "did and its last words, which are data.",
    {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "all that it has to know"},
            "host": {"type": "string", "description": "run it on this host, by ssh; empty: on this machine"},
            "only": {
                "type": "object",
                "description": "deny it everything but these: patterns of commands (`git *`), globs of files to read "
                "and to write (`$CWD/**`), and hosts",
                "properties": {"commands": _TEXTS, "read": _TEXTS, "write": _TEXTS, "hosts": _TEXTS},
                "additionalProperties": False,
            },
            "purpose": {"type": "string", "description": "what it is for, in one short sentence for the user"},
        },
        "required": ["task", "purpose"],
        "additionalProperties": False,
    },
)


@dataclass(slots=True)
class AgentHand:
    """
    :param policy: judges the command that does the same.
    :param policies: of this agent and those above it.
    :param budget: of the session, to which children add.
    """

    around: ShellSurroundings
    policy: StepPolicy
    policies: AgentPolicies
    budget: SessionBudget
    kind: StepKind = StepKind.AGENT
    _child: ChildRun | None = field(default=None, init=False)

    @property
    def admission(self) -> CallAdmission:
        """Of the session."""
        return self.policy.admission

    def specs(self) -> Sequence[ToolSpec]:
        """:returns: the tool ``agent``."""
        return (AGENT,)

    def names(self, step: ProposedStep) -> tuple[str, str]:
        """:returns: those of all agents."""
        return SERVER, AGENT_TOOL

    def proposed(self, number: int, use: ToolUse, directory: str) -> ProposedStep:
        """
        :returns: a task as a step.
        :raises UsageError: the arguments are wrong.
        """
        task = checked_instruction(text_argument(use, "task"))
        host = checked_host(text_argument(use, "host") if "host" in use.input else "")
        arguments: dict[str, Any] = {"task": task, "host": host}
        if (only := read_only(use.input.get("only"), self.policy.home)) is not None:
            arguments["only"] = msgspec.to_builtins(only)
        return ProposedStep(
            number=number,
            command=command_line(task, host),
            purpose=purpose_of(use),
            kind=StepKind.AGENT,
            arguments=arguments,
        )

    def preview(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what the policy says of the command that does the same, hooks left out."""
        verdict = self.policy.gate.judged(step.command, directory)
        arguments = {**step.arguments, "directory": directory}
        verdict = msgspec.structs.replace(verdict, arguments=arguments, resources=(), reversal=Reversal.UNKNOWN)
        return JudgedStep(step, verdict, Risk.UNKNOWN)

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """Judge it when its turn has come: what nothing can allow, then hooks, then the policy."""
        judged = self.preview(step, directory)
        if judged.verdict.decision is Decision.DENY:
            return judged
        answer = await self.policy.hooks.before(self._action(step, directory))
        if answer.decision == "deny":
            reason = answer.reason or "a hook denied it"
            denied = Verdict(Decision.DENY, answer.rule, reason, judged.verdict.arguments)
            return JudgedStep(step, denied, judged.risk, answer.hook)
        if answer.task:
            task, host = answer.task, step.arguments["host"]
            arguments = {**step.arguments, "task": task}
            step = msgspec.structs.replace(step, command=command_line(task, host), arguments=arguments)
        judged = self.preview(step, directory)
        return judged if not answer.hook else replace(judged, by=f"{judged.by}, changed by {answer.hook}")

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """
        Tell the hooks how it ended.

        :returns: whether the plan may go on.
        """
        status = "success" if result.outcome is StepOutcome.DONE else "error"
        return await self.policy.finished(msgspec.structs.replace(self._action(step, directory), status=status))

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        """:returns: nothing: each task is approved by itself."""
        return None

    async def run(self, call: OpenCall, judged: JudgedStep, how: StepRun) -> CommandResult:
        """Start the child, and wait for its end. Its whole answer is data."""
        arguments = judged.step.arguments
        host, child = arguments["host"], ChildRun(self.around.reactor, self.admission, judged.step, how)
        try:
            policies = self.budget.narrowed(self._policies(arguments))
            trace, environ = self.around.start.trace, self.around.environ
            start = child_start(arguments["task"], host, policies, trace, self._options(), environ)
            self._child = child
            status = await child.run(start)
        except (Unavailable, UsageError) as e:
            self.admission.close(call, "error", error=str(e))
            return CommandResult(StepOutcome.FAILED, None, b"", reason=str(e))
        finally:
            self._child = None
        done = child.report.done
        outcome = child.stopped or (StepOutcome.FAILED if done is None or done.error else StepOutcome.DONE)
        used = self.budget.below(done, f"the agent on {host}" if host else "the agent below", here=not host)
        said = (child.report.text(used), child.errors if done is None else "")
        data = "\n".join(part for part in said if part).encode("utf-8", "replace").replace(b"\n", b"\r\n")
        self.admission.close(call, STATUSES.get(outcome, "error"), data)
        reason = f"no end within {how.seconds:g} s" if outcome is StepOutcome.TIMED_OUT else ""
        if done is None and child.stopped is None:
            reason = why_no_answer(status, host)
        return CommandResult(outcome, status, data, reason=reason)

    def interrupt(self) -> None:
        """End the child, and what it runs."""
        if self._child is not None:
            self._child.stop(StepOutcome.INTERRUPTED)

    def kill(self) -> None:
        """End the child by force."""
        if self._child is not None:
            self._child.kill()

    def _options(self) -> tuple[str, ...]:
        """:returns: with which options agents below this one are started here."""
        options = self.around.options
        model = ("--model", options.model) if options.model else ()
        policy = self.around.core.request.options.get("policy")
        return (
            *(word for backend in backends_of(options.backend) for word in ("--backend", backend)),
            *model,
            *(("--policy", str(policy)) if policy else ()),
        )

    def _policies(self, arguments: Mapping[str, Any]) -> AgentPolicies:
        only = read_only(arguments.get("only"), self.policy.home)
        return self.policies if only is None else self.policies.merged(AgentPolicies((only.tables(),)))

    def _action(self, step: ProposedStep, directory: str) -> AgentAction:
        return AgentAction(
            task=step.arguments["task"],
            host=step.arguments["host"],
            directory=directory,
            instruction=self.policy.instruction(),
            step=step.number,
        )
