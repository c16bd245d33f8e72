"""The models of a session, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.llm import prices
from ironcurtain.llm.model import TokenUsage
from ironcurtain.llm.registry import Chosen
from ironcurtain.providers.model_choice import chosen_model
from ironcurtain.session.parts import Core


async def choose_model(
    core: Core,
    reactor: Any,
    environ: Mapping[str, str],
    given: Sequence[str],
    model: str,
    preferred: Sequence[str] = (),
) -> Chosen:
    """See :func:`~ironcurtain.providers.model_choice.chosen_model`."""
    services = core.services
    return await chosen_model(
        services.settings,
        given,
        model,
        preferred,
        redactor=services.redactor,
        clock=services.clock,
        reactor=reactor,
        proxies=services.proxies,
        environ=environ,
    )


def backends_of(option: object) -> tuple[str, ...]:
    """
    :param option: the option ``backend`` of a session: none, one, or a list.
    :returns: the backends in it.
    :raises UsageError: it has another form.
    """
    given = option if isinstance(option, list | tuple) else () if option is None else (option,)
    if not all(isinstance(backend, str) for backend in given):
        raise UsageError("the option backend is a text, or a list of texts")
    return tuple(backend for backend in given if backend)


def cost_of(core: Core, model: str, usage: TokenUsage) -> float | None:
    """:returns: US dollars for one request, by the prices of the settings or the built-in ones; ``None`` if unknown."""
    return prices.cost(model, usage, _prices(core))


def budget_tokens(core: Core, model: str, usage: TokenUsage) -> float:
    """:returns: for how many tokens of a budget those of one request count: cached ones at their price."""
    return prices.fresh_tokens(model, usage, _prices(core))


def _prices(core: Core) -> dict[str, prices.TokenPrice]:
    return {
        name: prices.TokenPrice(**msgspec.structs.asdict(price))
        for name, price in core.services.settings.prices.items()
    }
