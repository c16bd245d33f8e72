"""
Recordings of what real programs printed (``o``), wrote to standard error (``e``), were told (``>``) and ended with
(``!``: exit status or signal), against a scripted model; shortened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ironcurtain.agents.registry import BUILT_IN
from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.agents.streams.reports import Outgoing, Report, Text, ToolFinished, ToolStarted, TurnOver
from tests.agents.samples import facts

RECORDINGS = Path(__file__).parent / "recordings"


class Line(NamedTuple):
    """One line of a recording; the text is JSON except on standard error."""

    channel: str
    text: str

    @property
    def value(self) -> Any:
        """The JSON value."""
        return json.loads(self.text)


def recording(name: str) -> Iterator[Line]:
    """:returns: the lines of a recording."""
    for line in (RECORDINGS / f"{name}.txt").read_text().splitlines():
        channel, _, text = line.partition(" ")
        yield Line(channel, text)


def dialogue(agent: str, **changes: Any) -> Dialogue:
    """:returns: a new dialogue with an agent, as its adapter makes it."""
    [adapter] = [adapter for adapter in BUILT_IN if adapter.id == agent]
    return adapter.dialogue(facts(**changes))


class Replay:
    """
    Plays the agent's side of a recording.

    What the recording was told is said anew, through the dialogue; :attr:`written` is what the dialogue wrote.
    """

    def __init__(self, name: str, agent: str) -> None:
        self.reports: list[Report] = []
        self.written: list[dict[str, Any]] = []
        self.joined: list[bool] = []
        self.dialogue, waiting = dialogue(agent), True
        self._write(self.dialogue.begin())
        for line in recording(name):
            match line.channel:
                case "o":
                    self._take(self.dialogue.output(f"{line.text}\n".encode()))
                case "e":
                    self._take(self.dialogue.error_line(line.text))
                case ">" if (said := _said(line.value)) is not None:
                    if waiting:
                        self._write(self.dialogue.message(said))
                    else:
                        self._join(said)
                    waiting = False
                case ">" if _interrupts(line.value):
                    self._write(self.dialogue.interrupt())
            waiting = waiting or isinstance(self.reports[-1] if self.reports else None, TurnOver)

    @property
    def turns(self) -> list[TurnOver]:
        """The ends of turns."""
        return [report for report in self.reports if isinstance(report, TurnOver)]

    @property
    def text(self) -> str:
        """All text that was shown."""
        return "".join(report.text for report in self.reports if isinstance(report, Text))

    @property
    def started(self) -> list[tuple[str, str]]:
        """Names and arguments of the tools that began."""
        return [(report.name, report.what) for report in self.reports if isinstance(report, ToolStarted)]

    @property
    def finished(self) -> list[ToolFinished]:
        """The ends of tools."""
        return [report for report in self.reports if isinstance(report, ToolFinished)]

    def _take(self, found: Any) -> None:
        for report in found:
            if isinstance(report, Outgoing):
                self._write(report.data)
            else:
                self.reports.append(report)

    def _join(self, said: str) -> None:
        data = self.dialogue.join(said)
        self.joined.append(data is not None)
        self._write(data or b"")

    def _write(self, data: bytes) -> None:
        self.written += map(json.loads, data.splitlines())


def _said(value: Any) -> str | None:
    """:returns: the message of a line that tells the agent one."""
    if value.get("type") == "user":
        return str(value["message"]["content"][0]["text"])
    if value.get("method") in ("turn/start", "turn/steer", "session/prompt"):
        params = value["params"]
        return str((params.get("input") or params["prompt"])[0]["text"])
    return None


def _interrupts(value: Any) -> bool:
    return "interrupt" in json.dumps(value.get("request", value.get("method"))) or value.get("method") == (
        "session/cancel"
    )
