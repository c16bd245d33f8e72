"""Start the auto-approver of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironcurtain.approver.grounding import KnownDirectories
from ironcurtain.llm.model import TokenUsage
from ironcurtain.session.parts import Core


def start_auto_approver(core: Core, known: KnownDirectories, reactor: Any, environ: Mapping[str, str]) -> None:
    """Let it hear of escalations. It ends with their queue."""
    from ironcurtain.approver.approver import AutoApprover
    from ironcurtain.providers.model_choice import chosen_model

    services, wanted = core.services, core.services.settings.auto_approver

    def spend(tokens: TokenUsage) -> None:
        for count in core.aside:
            count(tokens)

    AutoApprover(
        escalations=core.escalations,
        trusted_input=core.trusted_input,
        audit=core.audit,
        known=known,
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
