"""Which provider an agent's model belongs to, and the key for it."""

from __future__ import annotations

from ironcurtain.agents.adapter import Facts
from ironcurtain.errors import UsageError
from ironcurtain.providers.registry import KNOWN_PROVIDERS

KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GOOGLE_API_KEY"}
"""Where most agents look for each provider's key."""


def fake_key(facts: Facts, provider: str, agent: str) -> str:
    """
    :param agent: its display name, for the message.
    :returns: the fake key for a provider.
    :raises UsageError: the session has none.
    """
    key = facts.fake_keys.get(provider, "")
    if not key:
        raise UsageError(f"{agent} needs a key for {provider}: configure [providers.{provider}] in config.toml")
    return key


def provider_and_model(facts: Facts, providers: tuple[str, ...], agent: str) -> tuple[str, str]:
    """
    Split the model's name for an agent that speaks with several providers.

    ``PROVIDER/MODEL`` says it all; else the name tells by its beginning, and failing that it is a model of the first
    provider with a key.

    :param providers: those the agent can use, the one to prefer first.
    :param agent: its display name, for messages.
    :returns: the provider, and the model as that provider spells it, empty for the agent's default.
    :raises UsageError: the session has no key for that provider.
    """
    named, slash, model = facts.model.partition("/")
    if slash and named in providers:
        provider = named
    else:
        model = facts.model
        keyed = [name for name in providers if facts.fake_keys.get(name)]
        provider = _family(model) or (keyed or providers)[0]
    fake_key(facts, provider, agent)
    return provider, model


def _family(model: str) -> str:
    return next((known.name for known in KNOWN_PROVIDERS.values() if known.models.match(model)), "")
