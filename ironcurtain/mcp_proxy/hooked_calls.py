"""The user's hooks at calls of tools: after the policy, before a person, and again after the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from twisted.internet.interfaces import IReactorTime

from ironcurtain.mcp_proxy.admission import OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.hooks import Hooks, HookVerdict, ToolAction
from ironcurtain.mcp_proxy.refusals import CallRefused
from ironcurtain.policy.verdict import Decision, Verdict

DENIED_CODE = "denied-by-hook"
"""The stable code for an agent that does not get a result."""

Evaluate = Callable[[str, str, dict[str, Any], ToolDefinition | None], Verdict]


class HookedCalls:
    """
    :param evaluate: judges a call of a tool.
    :param current: returns the definition of a server's tool that is in force.
    """

    def __init__(
        self,
        hooks: Hooks,
        clock: IReactorTime,
        session_id: str,
        evaluate: Evaluate,
        current: Callable[[str, str], ToolDefinition | None],
    ) -> None:
        self._hooks, self._clock, self._session_id = hooks, clock, session_id
        self._evaluate, self._current = evaluate, current

    async def before(
        self, call: OpenCall, verdict: Verdict, arguments: dict[str, Any], tool: ToolDefinition
    ) -> tuple[Verdict, dict[str, Any]]:
        """
        Ask about a call that the policy does not deny.

        :returns: the verdict, and the arguments that it is about. What a hook asks for instead is judged from the
            beginning, and so is what could have changed while it ran.
        """
        if verdict.decision is Decision.DENY or not self._hooks.present:
            return verdict, arguments
        answer = await self._hooks.before(self._action(call, verdict))
        if answer.decision == "deny":
            return _denied(answer, verdict), arguments
        if answer.arguments is not None:
            arguments = answer.arguments
        now = self._current(call.server, call.tool)
        if now is None or now.digest != tool.digest or now.withheld is not None:
            changed = "the tool's definition changed while hooks ran"
            return replace(verdict, decision=Decision.DENY, rule="changed-definition", reason=changed), arguments
        return self._evaluate(call.server, call.tool, arguments, tool), arguments

    async def after(self, call: OpenCall, verdict: Verdict, succeeded: bool) -> None:
        """
        Tell the hooks how a call ended.

        :raises CallRefused: the agent must not get the result.
        """
        if not self._hooks.present:
            return
        took = round((self._clock.seconds() - call.started) * 1000)
        status = "success" if succeeded else "error"
        answer = await self._hooks.after(replace(self._action(call, verdict), status=status, duration_ms=took))
        if answer.decision != "allow":
            why = f"RESULT WITHHELD: {answer.reason or 'a hook withheld it'}"
            raise CallRefused("failed", DENIED_CODE, why, answer.rule)

    def _action(self, call: OpenCall, verdict: Verdict) -> ToolAction:
        return ToolAction(
            server=call.server,
            tool=call.tool,
            arguments=dict(verdict.arguments),
            session=self._session_id,
            decision=str(verdict.decision),
        )


def _denied(answer: HookVerdict, verdict: Verdict) -> Verdict:
    reason = answer.reason or "a hook denied it"
    return replace(verdict, decision=Decision.DENY, rule=answer.rule, reason=reason)
