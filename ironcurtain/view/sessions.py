"""Sessions in words: what the list of sessions and who comes back to one should know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from ironcurtain.sandbox.spec import Kind
from ironcurtain.session.model import AuditHead, SessionInfo, Turn
from ironcurtain.text.columns import Line, Span, rows
from ironcurtain.text.display import ago, elapsed, one_line, time_of_day
from ironcurtain.text.quantities import counted, noun
from ironcurtain.view.escalations import NAME_LIMIT, WIDE

NAME_COLUMNS = 10
"""Columns for the name of a fact."""

DIGEST = 16
"""Number of characters of a digest that are shown."""


def outside_sandboxes(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each session with MCP servers that run outside any sandbox."""
    for info in found:
        if info.unsandboxed:
            run = noun(len(info.unsandboxed), "runs the MCP server", "run the MCP servers")
            yield f"Session {info.number}: outside any sandbox {run} {', '.join(info.unsandboxed)}."


def remarks(found: Sequence[SessionInfo], now: float) -> Iterator[str]:
    """
    :param now: seconds since the epoch.
    :returns: lines on where MCP servers run, on models, who pays, and what is down, broken or held by little, topic by
        topic.
    """
    for info in found:
        if info.sandbox not in ("", sandbox(info)):
            yield f"Session {info.number}: its MCP servers run in sandboxes of another kind, {info.sandbox}."
    for info in found:
        if info.model:
            yield f"Session {info.number}: the model is {one_line(info.model, NAME_LIMIT)}."
    for info in found:
        if info.payers:
            yield f"Session {info.number} is paid by {'; '.join(info.payers)}."
    for info in found:
        yield from (f"Session {info.number}: the MCP server {name} {why}." for name, why in info.servers_down.items())
        if waits := starting_words(info.servers_starting, now):
            yield f"Session {info.number}: {waits}."
    for info in found:
        faulty = ((server, fault) for server, faults in info.server_faults.items() for fault in faults)
        yield from (f"Session {info.number}: the MCP server {server}: {fault}." for server, fault in faulty)
    yield from outside_sandboxes(found)
    for info in found:
        if info.sandbox == Kind.LANDLOCK.value:
            yield f"Session {info.number}: what sandboxes of Landlock do not hold says: ironcurtain doctor."


def starting_words(servers: Mapping[str, float], now: float | None = None) -> str:
    """
    :param servers: since when MCP servers start.
    :param now: seconds since the epoch; ``None`` for a line that is not drawn again.
    :returns: which of them are still starting, and how long they have been, or since when, escaped; empty for none.
    """
    if not servers:
        return ""
    names = ", ".join(one_line(name, NAME_LIMIT) for name in servers)
    what = f"MCP {noun(len(servers), 'server')} {names} {noun(len(servers), 'is', 'are')} still starting"
    first = min(servers.values())
    return f"{what}, {f'since {time_of_day(first)}' if now is None else elapsed(now - first)}"


def sandbox(info: SessionInfo) -> str:
    """:returns: what holds its agent; the built-in one runs where its MCP servers do. Empty: nothing is made yet."""
    return str(info.options.get("sandbox") or info.sandbox)


def how_to_resume(info: SessionInfo) -> str:
    """:returns: a sentence on how to resume a session whose process died; empty if it cannot be resumed."""
    command = {"loop": "loop", "mcp-proxy": ""}.get(info.kind, "start")
    return f"To resume session {info.number}: ironcurtain {command} --resume {info.number}" if command else ""


def age(info: SessionInfo, now: float) -> str:
    """
    :param now: seconds since the epoch.
    :returns: how long ago it was started; its time is what another process wrote.
    """
    try:
        return ago(now - datetime.fromisoformat(info.started_at).timestamp())
    except ValueError:
        return "?"


def used(turns: Sequence[Turn]) -> tuple[str, str]:
    """:returns: the tokens and the cost of messages, in words."""
    if turns and not any(turn.usage.token_tracking_available for turn in turns):
        return "not available: the agent's model did not report them", "not known"
    given, made = (sum(getattr(turn.usage, name) for turn in turns) for name in ("input_tokens", "output_tokens"))
    costs = [turn.usage.cost for turn in turns if turn.usage.cost is not None]
    cost = f"${sum(costs):.4f}" if costs else "not known"
    if costs and len(costs) < len(turns):
        cost += f" for {len(costs)} of the messages, unknown for the others"
    return f"{given:,} in, {made:,} out", cost


def session_lines(info: SessionInfo, turns: Sequence[Turn], width: int, now: float) -> list[Line]:
    """
    :param turns: its messages so far.
    :param now: seconds since the epoch.
    :returns: a session in short: what it is, where it works, and what it has used.
    """
    tokens, cost = used(turns)
    state = f"{info.state}, started {age(info, now)} ago" + (f", {info.pending} waiting" if info.pending else "")
    facts = [
        ("session", f"{info.number}, {info.label}"),
        ("state", state),
        ("model", info.model),
        ("workspace", info.workspace),
        ("used", f"{counted(len(turns), 'message')}, tokens {tokens}; cost {cost}"),
        ("paid by", "; ".join(info.payers)),
        ("sandbox", sandbox(info)),
        ("down", ", ".join(info.servers_down)),
        ("waits", starting_words(info.servers_starting, now)),
        ("join", f"ironcurtain attach {info.number}"),
    ]
    return fact_lines(facts, width)


def fact_lines(facts: Iterable[tuple[str, str]], width: int = WIDE) -> list[Line]:
    """
    :param facts: names with what is said of them, which may be untrusted; those with nothing are left out.
    :param width: columns; by default, the terminal breaks the lines.
    """
    lines = ((Span(f"{name:<{NAME_COLUMNS}}", "dim"), Span(one_line(text))) for name, text in facts if text)
    return [row for line in lines for row in rows(line, width, NAME_COLUMNS)]


def head_words(head: AuditHead, width: int = 0) -> str:
    """
    :param width: columns in which the whole digest is shown, if it fits.
    :returns: the head of an audit log, not escaped.
    """
    whole = f"audit head {head.sequence} {head.digest}"
    return whole if len(whole) <= width else f"audit head {head.sequence} {head.digest[:DIGEST]}"
