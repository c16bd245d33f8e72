"""What an agent reports of its own tools: those in use, and the lines printed when they end."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironcurtain.session.agent_events import AgentToolFinished, AgentToolStarted
from ironcurtain.text.columns import Line, Span, cut
from ironcurtain.text.display import elapsed, one_line, took
from ironcurtain.view.diffs import diff_lines
from ironcurtain.view.signs import Signs

NAME_LIMIT = 40
"""Maximum length in characters of a tool's name."""

DIFF_LINES = 30
"""Maximum number of lines of a diff in the conversation; ``ironcurtain observe`` and the workspace have all."""

KEPT = 200
"""Maximum number of tools in use: an agent may report beginnings only."""

EXPLAINED = "lines with a dot tell what the agent reports of its own tools, inside its sandbox: nobody judged it"
"""Said once in a session."""


@dataclass(slots=True)
class _Tool:
    name: str
    what: str
    inside: bool
    started: float


@dataclass(slots=True)
class ReportedTools:
    """The tools in use, oldest first."""

    signs: Signs
    explained: bool = False
    """Whether :data:`EXPLAINED` was said."""
    _running: dict[str, _Tool] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._running)

    def began(self, event: AgentToolStarted, at: float) -> None:
        """:param at: seconds since the epoch."""
        name, what = one_line(event.name, NAME_LIMIT), one_line(event.what)
        self._running[event.tool_id] = _Tool(name, what, bool(event.parent), at)
        while len(self._running) > KEPT:
            del self._running[next(iter(self._running))]

    def over(self, event: AgentToolFinished, at: float, width: int) -> list[Line]:
        """:returns: the lines for a tool that ended; nothing if it is unknown."""
        if (tool := self._running.pop(event.tool_id, None)) is None:
            return []
        good = event.status == "success"
        indent = "  " if tool.inside else ""
        mark = f"{indent}{self.signs.dot.strip()} " if good else f"{indent}{self.signs.failed} "
        said = one_line(event.what)
        tail = f" ({took(max(0.0, at - tool.started) * 1000)})"
        if not good:
            tail = f": {one_line(event.status, 20)}{f', {said}' if said else ''}{tail}"
        room = max(0, width - len(mark) - len(tool.name) - 1)
        line: Line = (Span(mark, "dim" if good else "bad"), Span(f"{tool.name} {cut(tool.what, room)}".rstrip(), "dim"))
        lines = [line, (Span(cut(f"{indent}  {tail.strip(' ')}", width), "dim"),)] if not good else [line]
        return [*lines, *diff_lines(event.diff, DIFF_LINES, indent=f"{indent}  ")]

    def forget(self) -> None:
        """Forget all of them: the message is over."""
        self._running.clear()

    def status(self, now: float, width: int) -> Line:
        """:returns: the newest tool in use, and its duration. There must be one."""
        tool = next(reversed(self._running.values()))
        time = f" {elapsed(now - tool.started)}"
        room = width - len(tool.name) - len(time) - 1
        what = f" {cut(tool.what, room)}" if room > len("…") and tool.what else ""
        return (Span(tool.name), Span(what, "dim"), Span(time, "dim"))
