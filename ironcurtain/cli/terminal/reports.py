"""The output of commands that only query."""

from __future__ import annotations

from collections.abc import Sequence

from ironcurtain.cli.terminal.commands import AGENT_COMMANDS, DECISIONS, Simple
from ironcurtain.session.model import SessionInfo, Turn
from ironcurtain.text.columns import Line, Span, cut
from ironcurtain.text.display import one_line, shorten
from ironcurtain.view.sessions import used
from ironcurtain.view.signs import Signs
from ironcurtain.view.speech import shown

LOG_LINES = 10
"""Number of the log's last lines that ``/logs`` shows."""

SHORT = 400
"""Maximum number of characters of a message or answer processed for ``/history``."""


def help_lines() -> list[Line]:
    """:returns: the commands with their descriptions."""
    entries = [(f"/{name} [N]", text) for name, (_, text) in DECISIONS.items()]
    entries.append(("/show [N]", "show a waiting call completely, before you approve it"))
    entries.append(("/deny all", "deny all waiting calls of this session"))
    entries.append(("/approve N keep", "approve, and stop asking about such calls; see /permissions"))
    entries += [(f"/{name}", what) for name, what in AGENT_COMMANDS.items()]
    entries.append(("/withdraw [N]", "take back a message that waits for the agent"))
    entries.append(("/undo [TURN]", "show what undoing the last TURN restores, and ask"))
    entries += [(f"/{command.name.lower()}", command.value) for command in Simple]
    lines: list[Line] = [(Span(f"  {name:<16}", "key"), Span(text)) for name, text in entries]
    lines.append((Span("Other lines are sent to the agent. Ctrl-C cancels the message, twice it leaves.", "dim"),))
    return lines


def status_lines(info: SessionInfo) -> list[Line]:
    """:returns: what a session is: agent, model, workspace, sandbox."""
    rows = (
        ("session", f"{info.number}, {info.state}"),
        ("agent", info.kind),
        ("model", str(info.options.get("model") or "the agent's default, or as chosen with /model")),
        ("workspace", info.workspace),
        ("sandbox", info.sandbox or "none"),
        ("paid by", ", ".join(info.payers) or "nobody"),
    )
    return [(Span(f"  {name:<11}", "dim"), Span(one_line(text))) for name, text in rows]


def history_lines(turns: Sequence[Turn], width: int, signs: Signs) -> list[Line]:
    """:returns: the turns, each message and each answer cut to one line."""
    if not turns:
        return [(Span("no messages yet", "dim"),)]
    room = max(width - 6, 10)
    lines: list[Line] = []
    for turn in turns:
        message, answer = turn.message, turn.answer
        if turn.error:
            answer = f"incomplete: {turn.answer}" if turn.answer else f"no answer: {turn.error}"
        lines.append((Span(f"{turn.number:>4}  ", "dim"), Span(_short(message, room, signs), "bold")))
        lines.append((Span("      "), Span(_short(answer, room, signs), "bad" if turn.error else "")))
    return lines


def _short(text: str, room: int, signs: Signs) -> str:
    return cut(shorten(text[:SHORT], SHORT), room, signs.rest)


def budget_lines(turns: Sequence[Turn]) -> list[Line]:
    """:returns: the total usage of the turns."""
    tokens, cost = used(turns)
    facts = (("messages", str(len(turns))), ("tokens", tokens), ("cost", cost))
    return [(Span(f"  {name:<10} ", "dim"), Span(text)) for name, text in facts]


def log_lines(log: str, audit: str, tail: Sequence[str]) -> list[Line]:
    """
    :param log: path of the session's log.
    :param audit: path of its audit log.
    :param tail: the log's last lines.
    """
    lines: list[Line] = [
        (Span("  log        ", "dim"), Span(one_line(log))),
        (Span("  audit log  ", "dim"), Span(one_line(audit))),
    ]
    return lines + [(Span(f"  {shown(line)}", "dim"),) for line in tail]
