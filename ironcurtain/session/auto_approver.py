"""Start the auto-approver of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironcurtain.llm.model import TokenUsage
from ironcurtain.session.parts import Core


def start_auto_approver(core: Core, home: str, workspace: str, reactor: Any, environ: Mapping[str, str]) -> None:
    """
    Let it hear of escalations. It ends with their queue.

    :param home: absolute path of the user's home.
    :param workspace: real path of the workspace.
    """
    from ironcurtain.approver.approver import AutoApprover  # few sessions have one, and it is slow to import
    from ironcurtain.approver.grounding import KnownDirectories
    from ironcurtain.providers.model_choice import chosen_model

    services, wanted = core.services, core.services.settings.auto_approver

    def spend(tokens: TokenUsage) -> None:
        for count in core.aside:
            count(tokens)

    AutoApprover(
        escalations=core.escalations,
        trusted_input=core.trusted_input,
        audit=core.audit,
        known=KnownDirectories(home, workspace),
        choose=lambda: chosen_model(
            services.settings,
            (wanted.backend,) if wanted.backend else (),
            wanted.model,
            redactor=services.redactor,
            clock=services.clock,
            reactor=reactor,
            proxies=services.proxies,
            environ=environ,
        ),
        clock=services.clock,
        limit=wanted.max_per_session,
        spend=spend,
    )
