"""Why a person is asked about a call, in words: what its arguments do not show."""

from __future__ import annotations

from ironcurtain.jsonrpc import codec
from ironcurtain.policy.verdict import Verdict
from ironcurtain.text.display import json_line

LINKS = 10
"""Maximum number of links described one by one; the arguments have all paths."""

PATH_LIMIT, ASKED_LIMIT = 1000, 200
"""Maximum length in characters of a link's target, and of the requested path (the target matters more)."""


def reason_for(verdict: Verdict) -> str:
    """:returns: why a person is asked, with facts that the arguments do not contain, such as a remote's address."""
    written = codec.encode(verdict.arguments).decode() + verdict.reason
    others = [r for r in verdict.resources if not r.written]
    meant = [f"{r.argument or r.role} means {r.value}" for r in others if r.value not in written]
    return "; ".join([verdict.reason, *_links(verdict), *meant])


def _links(verdict: Verdict) -> list[str]:
    """:returns: for each path that is reached by a link: its target, then the requested path."""
    found = dict.fromkeys((r.argument, r.value, r.written) for r in verdict.resources if r.written)
    lines = [
        f"{name} resolves through links to {json_line(real, PATH_LIMIT)} (requested as {json_line(asked, ASKED_LIMIT)})"
        for name, real, asked in list(found)[:LINKS]
    ]
    return lines if len(found) <= LINKS else [*lines, f"{len(found) - LINKS} more paths resolve through links"]
