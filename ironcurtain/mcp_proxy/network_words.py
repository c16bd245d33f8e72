"""What is said about connections and requests: to the person who is asked, and to the program that is refused."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from ironcurtain.policy.network import ASK_RULE, CONNECT, REQUEST, TELEMETRY_RULE, refusal_status
from ironcurtain.policy.verdict import Verdict
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.text.display import one_line

ONCE_SECONDS: Final = 300.0
"""Seconds for which the answer to a question holds, as programs open further connections for one purpose."""

SUBJECT_LIMIT: Final = 200
"""Maximum length in characters of a target in a refusal."""

_MINUTES = f"{ONCE_SECONDS / 60:.0f} minutes"

RULE: Final = "a rule for the server network"
REGISTRIES: Final = "[registries] in the settings"
"""What opens a host for good: one like any other, and one of a package registry."""

_WAY = (
    f"Do not repeat it: only the person can allow it, with {RULE}; do without it, or use a tool of the MCP server "
    "ironcurtain"
)

_WAYS: dict[str, str] = {
    "denied-by-person": f"a person refused it, and is not asked again for {_MINUTES}. Do without it, and say so",
    "expired": "nobody decided in time. Go on with what needs no approval, and say that you wait for this one",
    "withdrawn": "the question was withdrawn before anybody decided",
    "nobody-to-ask": f"it needs a person's approval, and nobody is there to ask. {_WAY}",
    "too-many-questions": "the person has too many questions to answer already. Wait for the answers, or do without it",
    "changed-meanwhile": "what the policy says about it changed while a person decided. Try again",
    "circuit-breaker": "too many different hosts were tried. Wait a minute, and try only what you need",
}


def approval_words(tool: str, offer: str = "", *, once: bool = False) -> str:
    """
    :param offer: what an approval opens, in words; empty: the host and port.
    :param once: whether it is for one request only.
    :returns: what one approval covers.
    """
    if offer:
        return f"an approval opens {offer}; once means for {_MINUTES}; {REGISTRIES} opens it for good"
    if once:
        return "once means this request only; a rule in the policy allows equal ones for good"
    what = "connections to this host and port" if tool == CONNECT else "equal requests"
    return f"once means all {what} for {_MINUTES}; a rule in the policy allows them for good"


def refusal(method: str, target: str, verdict: Verdict, code: str, offer: str = "") -> RequestRefusal:
    """
    :param method: ``CONNECT`` for a connection.
    :param target: what the program wanted to reach.
    :param code: why it is refused, a stable code.
    :param offer: see :func:`approval_words`.
    :returns: the refusal for the program, in words by which a model knows what to do.
    """
    shown = one_line(target, SUBJECT_LIMIT)
    subject = f"the connection to {shown}" if method == "CONNECT" else f"{one_line(method, 20)} {shown}"
    if verdict.rule == TELEMETRY_RULE:
        return RequestRefusal(refusal_status(verdict), "telemetry", f"{subject} is refused: {verdict.reason}")
    way = _WAYS.get(code, _WAY)
    if offer:
        way = way.replace(RULE, REGISTRIES)
    # Phrases, of which some programs show nothing else, are cut.
    why = f"{'no rule is about it' if verdict.rule == ASK_RULE else verdict.reason} (rule {verdict.rule})"
    return RequestRefusal(
        HTTPStatus.FORBIDDEN, code, f"{subject} is refused: {why}{'; ' if code in _WAYS else '. '}{way}"
    )


def party_of(verdict: Verdict) -> str:
    """:returns: who wanted it."""
    return str(verdict.arguments.get("party"))


def subject(tool: str, verdict: Verdict) -> tuple[str, str]:
    """:returns: the method, and what it is about."""
    arguments = verdict.arguments
    if tool == REQUEST:
        return str(arguments.get("method")), str(arguments.get("url"))
    host = str(arguments.get("host"))
    return "CONNECT", f"{f'[{host}]' if ':' in host else host}:{arguments.get('port')}"


def reported_place(tool: str, verdict: Verdict) -> tuple[str, str, str]:
    """:returns: host, method and path for a report."""
    method, target = subject(tool, verdict)
    if tool == CONNECT:
        return str(verdict.arguments.get("host")), method, target
    _, _, address = target.partition("://")
    host, slash, path = address.partition("/")
    return host, method, slash + path
