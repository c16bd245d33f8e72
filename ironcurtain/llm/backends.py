"""The names of what answers as a model. They are apart from the adapters, which most commands need not import."""

from __future__ import annotations

from typing import Final

from ironcurtain.errors import UsageError

OVER_HTTP: Final = ("anthropic", "openai", "openai-chat", "google")
"""The providers behind HTTP; :data:`ironcurtain.llm.dialects.DIALECTS` has their adapters."""

BACKENDS: Final = (*OVER_HTTP, "scripted", "subprocess")
"""
What ``--backend`` accepts. After a colon, ``scripted`` takes its file and ``subprocess`` its command:
``scripted:demo.toml``, ``subprocess:ollama run llama3``; the others may take a model, as in ``anthropic:MODEL``.
"""


def split_backend(backend: str) -> tuple[str, str]:
    """:returns: the name of a backend, and what follows its colon."""
    name, _, argument = backend.partition(":")
    return name, argument


def check_backend(backend: str) -> None:
    """:raises UsageError: there is no such backend, or what it needs after the colon is missing."""
    name, argument = split_backend(backend)
    if name not in BACKENDS:
        raise UsageError(f"there is no backend {backend!r}; choose one of: {', '.join(BACKENDS)}")
    if name == "subprocess" and not argument.strip():
        raise UsageError("the backend subprocess needs a command: --backend 'subprocess:ollama run llama3'")
