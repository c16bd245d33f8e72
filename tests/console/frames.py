"""Examples of the console's screen: ``python -m tests.console.frames`` writes them to ``tests/console/pictures``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ironcurtain.console.details import Details
from ironcurtain.console.keys import press
from ironcurtain.console.layout import Frame, frame
from ironcurtain.console.state import ConsoleState, Section
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.operations.model import EscalationView
from ironcurtain.session import agent_events, events
from ironcurtain.session.model import SessionInfo, Turn, Usage
from ironcurtain.text.columns import unstyled
from ironcurtain.view.chronicle import Chronicle
from tests.console.doubles import NOW, escalation, session

SIZES = {"80x24": (80, 24), "120x30": (120, 30), "160x40": (160, 40), "200x50": (200, 50)}

TASKS = (
    ("claude-code: mend the failing tests of the parser", "/home/ada/src/calendar"),
    ("codex: interactive", "/home/ada/src/billing/services/invoices"),
    ("builtin: why is the import slow?", "/home/ada/.ironcurtain/sessions/41/sandbox"),
    ("gemini: translate the manual into Czech", "/home/ada/src/manual"),
    ("opencode: upgrade the dependencies", "/home/ada/src/shop/frontend"),
    ("goose: write release notes", "/home/ada/src/calendar-1.3"),
    ("loop: claude-code until all tests pass", "/home/ada/src/parser"),
    ("shell: free some space", "/home/ada"),
)


def sessions(count: int, waiting: Sequence[EscalationView]) -> list[SessionInfo]:
    """
    :param waiting: calls that wait.
    :returns: running sessions.
    """
    states, asked = ("processing", "ready"), Counter(each.session for each in waiting)
    return [
        session(n, label=label, workspace=place, state=states[(n - 1) % 2], sandbox="container", pending=asked[n])
        for n, (label, place) in enumerate(TASKS[:count], 1)
    ]


def questions(count: int) -> list[EscalationView]:
    """:returns: calls that wait."""
    root, some = "/home/ada/src/calendar", list[EscalationView]()
    for n in range(count):
        kind: dict[str, Any] = [
            {
                "tool": "write_file",
                "arguments": {"path": f"{root}/docs/releases/1.{n}.rst", "content": "Release\n" * 9},
            },
            {"server": "git-remote", "tool": "git_push", "arguments": {"repository": root, "branch": f"release-1.{n}"}},
            {"server": "network", "tool": "connect", "arguments": {"host": f"mirror{n}.example.org", "port": 443}},
        ][n % 3]
        arguments = kind.pop("arguments")
        about = {"session": n % 4 + 1, "label": TASKS[n % 4][0], "scope": "" if n % 3 else f"{root} and below"}
        some.append(escalation(n + 21, arguments, **kind, **about, expires_at=NOW + 290 - 23 * n))
    return some


def happened() -> Chronicle:
    """:returns: the activity of a session."""
    known = Chronicle()
    told: tuple[events.SessionEvent, ...] = (
        events.StateChanged(state="processing"),
        events.TurnStarted(turn=1, message="mend the failing tests of the parser"),
        events.AgentText(text="I run the tests first.\n"),
        agent_events.AgentToolStarted(tool_id="t1", name="Bash", what="python -m pytest -q tests/parser"),
        agent_events.AgentToolFinished(tool_id="t1", status="error", what="3 failed, 118 passed"),
        agent_events.AgentToolStarted(tool_id="t2", name="Edit", what="parser/lexer.py"),
        agent_events.AgentToolFinished(
            tool_id="t2", status="success", diff="@@ -40 +40 @@\n-    return None\n+    return Token(end)"
        ),
        events.ToolCallRaised(
            call_id="c1", server="filesystem", tool="write_file", arguments='{"path": "/home/ada/notes.txt"}'
        ),
        events.ToolDecision(call_id="c1", decision="deny", rule="outside-the-workspace", reason="not its own"),
        events.ToolFinished(call_id="c1", status="denied"),
        events.ToolCallRaised(
            call_id="c2", server="git-remote", tool="git_push", arguments='{"branch": "release-1.3"}'
        ),
    )
    for second, event in enumerate(told):
        known.add(events.Stamped(second + 1, NOW - 60 + second, event))
    return known


def _state(count: int, waiting: int, *, past: int = 2) -> ConsoleState:
    decided = [
        escalation(n, session=2, outcome=outcome, by="ada", closed_at=NOW - 60 * n)
        for n, outcome in zip(range(1, past + 1), ("approved", "denied"), strict=False)
    ]
    asked = questions(waiting)
    return ConsoleState().news(sessions(count, asked), [*asked, *decided], NOW)


def _opened() -> ConsoleState:
    state = _state(8, 2).go(Section.SESSIONS)
    usage = Usage(input_tokens=48_210, output_tokens=3_456, cost=0.1834, token_tracking_available=True)
    turns = tuple(Turn(number=n, message="m", answer="a", usage=usage, timestamp="") for n in (1, 2))
    opened, _ = press(state, "enter", QUIET_SECONDS)
    return replace(opened, turns=turns)


STATES = {
    "nothing": lambda: _state(0, 0, past=0),
    "one question": lambda: _state(1, 1),
    "twelve questions": lambda: _state(4, 12),
    "eight sessions": lambda: _state(8, 0).go(Section.SESSIONS),
    "an opened session": _opened,
}


def picture(name: str, columns: int, rows: int) -> Frame:
    """:returns: an example, as it is once it was drawn."""
    details, state = Details(), STATES[name]()
    details.activity = happened()
    return frame(state, details, columns, rows, NOW, "ada")


def pictures(size: str) -> str:
    """:returns: every example at a terminal of this size, one below the other."""
    parts = []
    for name in STATES:
        lines = [unstyled(line).rstrip() for line in picture(name, *SIZES[size]).lines]
        parts.append(f"== {name}\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def picture_file(size: str) -> Path:
    """:returns: where the pictures of a size are kept."""
    return Path(__file__).with_name("pictures") / f"{size}.txt"


if __name__ == "__main__":
    for each in SIZES:
        picture_file(each).parent.mkdir(exist_ok=True)
        picture_file(each).write_text(pictures(each))
