"""A session in numbers, for reports: what was asked, who decided what, which calls were made, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ironcurtain.session.model import Turn, Usage

TEXT_LIMIT = 400
"""Maximum length in characters of a text in a report."""

MOST = 2**100
"""Largest number that is believed, above those of other hosts' sessions: Python writes none of thousands of digits."""

Record = Mapping[str, Any]


class ReportedMessage(msgspec.Struct, frozen=True):
    """What a person asked the agent."""

    time: str
    message: str
    error: str = ""


class ReportedDecision(msgspec.Struct, frozen=True):
    """
    How a waiting call was decided.

    :param outcome: ``approved``, ``denied``, ``expired`` ...
    :param by: who; empty if nobody.
    :param permission: the escalation whose kept approval decided; 0: none.
    """

    time: str
    outcome: str
    by: str
    server: str
    tool: str
    rule: str
    permission: int = 0


class ReportedCalls(msgspec.Struct, frozen=True):
    """
    Calls of one tool.

    :param verdicts: how many were judged how by the policy: ``allow``, ``deny``, ``escalate``.
    :param outcomes: how many ended how: ``success``, ``error``, ``denied`` ...
    """

    server: str
    tool: str
    verdicts: dict[str, int]
    outcomes: dict[str, int]


class ReportedRefusals(msgspec.Struct, frozen=True):
    """Calls that one rule denied, and requests that a proxy refused."""

    rule: str
    count: int


class ReportedPackages(msgspec.Struct, frozen=True):
    """
    Packages of a registry that the agent fetched.

    :param releases: names with versions, each once.
    """

    registry: str
    releases: tuple[str, ...]


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """
    One session.

    :param tokens_in: as ``tokens_out``: of all messages; ``None``: unknown.
    :param cost: in US dollars; ``None``: unknown.
    :param intact: whether nothing is wrong with the audit log.
    :param proved: sentences on what its signatures prove.
    """

    number: int
    id: str
    kind: str
    label: str
    started: str
    ended: str
    asked: tuple[ReportedMessage, ...]
    decided: tuple[ReportedDecision, ...]
    calls: tuple[ReportedCalls, ...]
    refused: tuple[ReportedRefusals, ...]
    packages: tuple[ReportedPackages, ...]
    model_requests: int
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    intact: bool
    proved: tuple[str, ...]

    @property
    def used(self) -> float:
        """When it was used last, in seconds since the epoch, as its records say; 0: they do not."""
        times = (self.started, self.ended, *(a.time for a in self.asked), *(d.time for d in self.decided))
        return max(map(_seconds, times))


def summarize(
    description: Record, records: Iterable[Record], turns: Sequence[Turn], intact: bool, proved: Iterable[str]
) -> SessionSummary:
    """
    :param description: the session's.
    :param records: of its audit log. Members of any kind are accepted: somebody may have changed them.
    :param intact: see :class:`SessionSummary`, as for ``proved``.
    """
    calls: dict[str, Record] = {}
    verdicts: dict[tuple[str, str], Counter[str]] = {}
    outcomes: dict[tuple[str, str], Counter[str]] = {}
    refused: Counter[str] = Counter()
    packages: dict[str, dict[str, None]] = {}
    decided, tokens, requests, ended = list[ReportedDecision](), [0, 0], 0, ""
    for record in records:
        kind, call = record.get("kind"), calls.get(_text(record, "callId"), {})
        if kind == "call":
            calls[_text(record, "callId")] = record
            verdicts.setdefault(_tool(record), Counter())[_text(record, "decision")] += 1
        elif kind == "question":
            calls[_text(record, "callId")] = record
        elif kind == "outcome":
            outcomes.setdefault(_tool(call), Counter())[_text(record, "status")] += 1
        elif kind == "decision":
            server, tool = _tool(call)
            time, outcome, by = (_text(record, name) for name in ("time", "outcome", "by"))
            decided.append(
                ReportedDecision(
                    time, outcome, by, server, tool, _text(call, "rule"), _number(record.get("permission"))
                )
            )
        elif kind == "model-response" and isinstance(usage := record.get("usage"), dict):
            tokens[0] += sum(_number(usage.get(name)) for name in ("input", "cacheRead", "cacheWrite"))
            tokens[1] += _number(usage.get("output"))
        elif kind == "package":
            release = f"{_text(record, 'name')} {_text(record, 'release')}"
            packages.setdefault(_text(record, "registry"), {})[release] = None
        elif kind == "end":
            ended = _text(record, "time")
        if kind in ("call", "model-request", "package-request") and record.get("decision") == "deny":
            refused[_text(record, "rule")] += 1
        requests += kind == "model-request"
    known = [turn.usage for turn in turns if turn.usage.token_tracking_available]
    costs = [usage.cost for usage in known if usage.cost is not None]
    if known and not any(tokens):
        tokens = [sum(_number(each) for each in counts) for counts in zip(*map(_tokens, known), strict=True)]
    unknown = bool(turns) and not known and not any(tokens)
    return SessionSummary(
        number=_number(description.get("number")),
        id=_text(description, "id"),
        kind=_text(description, "kind"),
        label=_text(description, "label"),
        started=_text(description, "started_at"),
        ended=ended,
        asked=tuple(ReportedMessage(turn.timestamp, turn.message, turn.error) for turn in turns),
        decided=tuple(decided),
        calls=tuple(
            ReportedCalls(server, tool, dict(verdicts[server, tool]), dict(outcomes.get((server, tool), {})))
            for server, tool in sorted(verdicts)
        ),
        refused=tuple(ReportedRefusals(rule, count) for rule, count in refused.most_common()),
        packages=tuple(ReportedPackages(registry, tuple(releases)) for registry, releases in packages.items()),
        model_requests=requests,
        tokens_in=None if unknown else tokens[0],
        tokens_out=None if unknown else tokens[1],
        cost=sum(costs) if costs else None,
        intact=intact,
        proved=tuple(proved),
    )


def _text(record: Record, name: str) -> str:
    try:
        return str(record.get(name, ""))[:TEXT_LIMIT]
    except ValueError:  # it has a number of thousands of digits
        return ""


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _tokens(usage: Usage) -> tuple[int, int]:
    return usage.input_tokens, usage.output_tokens


def _tool(record: Record) -> tuple[str, str]:
    return _text(record, "server"), _text(record, "tool")


def _number(value: object) -> int:
    return value if isinstance(value, int) and abs(value) <= MOST else 0
