"""What the steps of one session are judged and recorded with."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

import msgspec

from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.hooks import Action, Hooks
from ironcurtain.session.call_events import teller
from ironcurtain.session.tools import session_hooks
from ironcurtain.shell.inheritance import AgentPolicies
from ironcurtain.shell.messages import Message, Notice
from ironcurtain.shell.narrowing import NarrowedGate
from ironcurtain.shell.surroundings import ShellSurroundings


class StepPolicy(msgspec.Struct, frozen=True):
    """
    What steps of all kinds are judged and recorded with.

    :param instruction: gives what the user has asked for.
    :param tell: gets messages for front ends.
    :param home: absolute path of the user's home directory.
    """

    gate: NarrowedGate
    hooks: Hooks
    admission: CallAdmission
    instruction: Callable[[], str]
    tell: Callable[[Message], None]
    home: str

    @classmethod
    def of(
        cls,
        around: ShellSurroundings,
        policies: AgentPolicies,
        shell: str,
        instruction: Callable[[], str],
        tell: Callable[[Message], None],
    ) -> StepPolicy:
        """
        :param policies: of this agent and those above it.
        :param shell: ``bash``, ``zsh``, ``fish`` or another.
        :returns: that of one session.
        :raises ConfigurationError: a policy is wrong.
        """
        core, gate = around.core, NarrowedGate.of(around, policies, shell)
        version = hashlib.sha256(msgspec.json.encode(around.policy.approval, order="deterministic")).hexdigest()[:16]
        admission = CallAdmission(
            session_id=core.id,
            audit=core.audit,
            escalations=core.escalations,
            clock=around.reactor,
            new_id=lambda: secrets.token_hex(16),
            policy_version=lambda: version,
            events=teller(core.emit, core.services.redactor),
            home=around.home,
            has_snapshot=lambda: core.snapshots.ready,
        )
        hooks = session_hooks(core, around.reactor, around.environ)
        return cls(gate, hooks, admission, instruction, tell, around.home)

    async def finished(self, action: Action) -> bool:
        """
        Tell the hooks how a step ended.

        :returns: whether the plan may go on; front ends are told why not.
        """
        answer = await self.hooks.after(action)
        if answer.decision != "allow":
            self.tell(Notice(text=f"{answer.hook or 'the hooks'}: {answer.reason}"))
        return answer.decision == "allow"
