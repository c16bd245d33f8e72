"""
Headers that clients of model APIs send, and that may reach a provider beside those of its own clients.

Gateways take orders from headers: where to send a request, which stored settings to use. So only known names pass.
"""

from __future__ import annotations

from typing import Final

COMMON: Final = frozenset(
    (
        "accept",
        "accept-language",
        "idempotency-key",
        "sec-fetch-mode",
        "user-agent",
        "x-client-request-id",
        "x-request-id",
        # W3C Trace Context
        "traceparent",
        "tracestate",
        # OpenCode, whatever the provider
        "x-opencode-parent-session-id",
        "x-opencode-session-id",
        "x-parent-session-id",
        "x-session-affinity",
        "x-session-id",
    )
)
"""For every provider; Content-Type and Content-Encoding pass as well."""

GENERATED_CLIENTS: Final = frozenset(
    f"x-stainless-{name}"
    for name in (
        "arch",
        "async",
        "helper",
        "helper-method",
        "lang",
        "os",
        "package-version",
        "poll-helper",
        "raw-response",
        "read-timeout",
        "retry-count",
        "runtime",
        "runtime-version",
        "stream-helper",
        "timeout",
    )
)
"""Of the SDKs of Anthropic and OpenAI, which one generator writes."""
