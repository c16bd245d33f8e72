"""
All recordings of the real programs, each in pieces of several sizes.

Those in ``one_message`` are of commands that get one message and end. Agents do not run like that here, and their
dialogues have another format: their standard error is the same, and their output must not be taken for an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.outcome import TurnOutcome, failure
from ironcurtain.agents.registry import BUILT_IN
from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.agents.streams.reports import (
    Activity,
    Failed,
    Outgoing,
    Report,
    Text,
    TextDropped,
    ToolFinished,
    ToolStarted,
    TurnOver,
    Waiting,
)
from tests.agents.streams.replaying import RECORDINGS, Replay, dialogue, recording

SIZES = (1, 7, 4096)
"""Of pieces, in bytes: within every word, within every line, and many lines at once."""

STAYING = sorted(path.stem for path in RECORDINGS.glob("*.txt"))
ONE_MESSAGE = sorted(path.stem for path in (RECORDINGS / "one_message").glob("*.txt"))

WORDS = "".join(f"word{number} " for number in range(20))

ENDS: dict[str, tuple[str, ...]] = {
    "claude-code-cut": ("second try",),
    "claude-code-empty": ("! API Error: 400 no reply is left",),
    "claude-code-errmid": ("second try",),
    "claude-code-int": ("! it was interrupted",),
    "claude-code-inttool": ("! API Error: 400 no reply is left",),
    "claude-code-live-initialize": ("Error: No messages to compact", "## Context Usage", "hello yourself"),
    "claude-code-live-interrupt": ("! it was interrupted", "answer to next"),
    "claude-code-live-second-during-text": (WORDS[: WORDS.index("word14")], "answer to second"),
    "claude-code-live-second-during-tool": ("after tool",),
    "claude-code-long": (WORDS,),
    "claude-code-maxtok": ("cut offgo on",),
    "claude-code-maxturns": ("! Reached maximum number of turns (2)",),
    "claude-code-quota": ("! API Error: Request rejected (429)",),
    "claude-code-r400": ("! Prompt is too long",),
    "claude-code-r401": (),
    "claude-code-r403": ("! Failed to authenticate. API Error: 403 Error",),
    "claude-code-r429": ("after 429",),
    "claude-code-r500then": ("after 500",),
    "claude-code-r529": ("! API Error: Repeated 529 Overloaded errors.",),
    "claude-code-sub": ("main done",),
    "claude-code-term": (),
    "claude-code-tools": ("All is done now.",),
    "codex-cut": ("second try",),
    "codex-edit": ("done",),
    "codex-live-app-server": ("steered answer", "! it was interrupted", "after interrupt"),
    "codex-maxtok": ("cut off\n[cut at the model's limit: say 'continue']",),
    "codex-quota": (),
    "gemini-cut": ("! terminated",),
    "gemini-edit": ("done",),
    "gemini-live-acp": ("! it was interrupted", "! it was interrupted", "after cancel"),
    "opencode-edit": ("done",),
    "opencode-live-acp": ("second answer", "! it was interrupted", "after cancel"),
    "opencode-quota": (),
}
"""How the turns of a recording end: how the answer begins, or after ``!`` the reason why there is none."""

KILLED = {
    "claude-code-r401": ("", "401 authentication_failed"),
    "claude-code-term": ("word0 word1 word2 word3 ", ""),
    "codex-quota": ("", "Reconnecting... 1/5"),
    "opencode-quota": ("", ""),
}
"""Recordings whose program was killed within a turn: the text until then, and the reason."""

WAITS = {
    "claude-code-cut": ["the connection broke"],
    "claude-code-r401": ["401 authentication_failed"] * 7,
    "claude-code-r429": ["429 rate_limit"] * 2,
    "claude-code-r500then": ["500 server_error"] * 2,
    "claude-code-r529": ["529 overloaded"] * 2,
    "codex-cut": ["Reconnecting... 1/5"],
    "codex-quota": ["Reconnecting... 1/5"],
    "opencode-quota": ["AI_APICallError: You have hit your usage limit"],
}
"""How the reasons of a recording's waits begin; the others have none."""

WAITS_ON_STDERR = {
    "gemini-r429": ["Suggested retry after 1s."] * 2,
    "gemini-r529": [f"Attempt {number} failed with status 529." for number in range(1, 5)],
    "opencode-errmid": ["Overloaded"],
    "opencode-maxturns": ["AI_APICallError: This model does not support assistant message prefill."],
    "opencode-quota": ["AI_APICallError: You have hit your usage limit"],
    "opencode-r400": ["AI_APICallError: prompt is too long: 250000 tokens > 200000 maximum"] * 3,
    "opencode-r401": ["AI_APICallError: Error"],
    "opencode-r429": ["AI_APICallError: Error"] * 2,
    "opencode-r529": ["AI_APICallError: Error"] * 5,
}
"""The same, of commands that get one message."""

KINDS = {
    "gemini-quota": "quota",
    "gemini-r529": "overloaded",
    "opencode-errmid": "overloaded",
    "opencode-quota": "quota",
}
"""What the end of standard error says of a command's failure; that of the others says nothing in particular."""


def agent_of(name: str) -> str:
    """:returns: the agent that a recording is of."""
    return next(adapter.id for adapter in BUILT_IN if name.startswith(adapter.id))


def fed(talk: Dialogue, name: str, size: int) -> Iterator[Report]:
    """
    Give a dialogue what a program printed, in pieces of a size that end before each line of standard error.

    :returns: what it says, but for what it answers.
    """
    waiting = b""
    for line in recording(name):
        if line.channel == "o":
            waiting += f"{line.text}\n".encode()
        elif line.channel == "e":
            yield from _output(talk, waiting, size)
            yield from talk.error_line(line.text)
            waiting = b""
    yield from _output(talk, waiting, size)


def _output(talk: Dialogue, data: bytes, size: int) -> Iterator[Report]:
    for start in range(0, len(data), size):
        yield from (each for each in talk.output(data[start : start + size]) if not isinstance(each, Outgoing))


def outcome(name: str) -> TurnOutcome:
    """:returns: how a recorded program ended."""
    lines = list(recording(name))
    out, err = ("\n".join(each.text for each in lines if each.channel == channel) for channel in "oe")
    status = next((int(each.text) for each in lines if each.channel == "!"), 143)
    return TurnOutcome(status if status >= 0 else 128 - status, out.encode(), err.encode())


def reasons(reports: Iterable[Report]) -> list[str]:
    """:returns: why an agent waited."""
    return [report.reason for report in reports if isinstance(report, Waiting)]


class StayingTests(SynchronousTestCase):
    """Programs that stay, which is how agents run."""

    def begun_alike(self, found: Iterable[str], expected: Iterable[str], name: str) -> None:
        """Compare texts of which the beginning is expected."""
        texts = list(found)
        shortened = [text[: len(begin)] for text, begin in zip(texts, expected, strict=False)]
        self.assertEqual((shortened, len(texts)), (list(expected), len(list(expected))), name)

    def test_every_recording_has_its_answers_and_waits(self) -> None:
        self.assertEqual(sorted(ENDS), STAYING)
        for name in STAYING:
            replay = Replay(name, agent_of(name))
            turns = [f"! {turn.failed.reason}" if turn.failed else turn.answer for turn in replay.turns]  # type: ignore[union-attr]
            self.begun_alike(turns, ENDS[name], name)
            self.begun_alike(reasons(replay.reports), WAITS.get(name, ()), name)

    def test_answers_are_the_text_that_was_shown(self) -> None:
        for name in STAYING:
            replay, shown = Replay(name, agent_of(name)), ""
            for report in replay.reports:
                match report:
                    case Activity("answering") | TextDropped() | ToolStarted():
                        shown = ""
                    case Text(text):
                        shown += text
                    case TurnOver(answer, failed):
                        said = answer.partition("\n[cut at")[0]
                        self.assertEqual("" if failed and not said else shown.rstrip(), said.rstrip(), name)
                        shown = ""

    def test_tools_begin_before_they_end_and_all_end(self) -> None:
        for name in STAYING:
            replay, running, known = Replay(name, agent_of(name)), set[str](), set[str]()
            for report in replay.reports:
                match report:
                    case ToolStarted(identity):
                        running.add(identity)
                        known.add(identity)
                    case ToolFinished(identity):
                        self.assertIn(identity, known, name)
                        running.discard(identity)
            interrupted = any(end.startswith("! it was interrupted") for end in ENDS[name])
            self.assertEqual(running if not interrupted else set(), set(), name)

    def test_programs_that_were_killed_leave_text_and_reason(self) -> None:
        self.assertEqual({name for name, ends in ENDS.items() if not ends}, set(KILLED))
        for name, (text, reason) in KILLED.items():
            over = Replay(name, agent_of(name)).dialogue.ended(outcome(name))
            assert isinstance(over.failed, Failed)
            self.assertEqual((over.answer, over.failed.reason), (text, reason), name)

    def test_pieces_of_any_size_say_the_same(self) -> None:
        for name in STAYING:
            said = []
            for size in SIZES:
                talk = dialogue(agent_of(name))
                talk.begin()
                talk.message("do the thing")
                said.append(list(fed(talk, name, size)))
            self.assertEqual(said[0], said[-1], name)
            self.assertEqual(said[1], said[-1], name)
            self.assertTrue(said[0], name)

    def test_usage_is_counted_where_the_agent_says_it(self) -> None:
        for name in STAYING:
            for turn in Replay(name, agent_of(name)).turns:
                counts = agent_of(name) in ("claude-code", "codex")
                self.assertEqual(turn.usage is not None, counts, name)
                if turn.usage is not None and turn.answer and turn.failed is None and "initialize" not in name:
                    self.assertEqual(turn.usage.output_tokens % 5, 0, name)  # five for each response of the model


class OneMessageTests(SynchronousTestCase):
    """Commands that get one message and end."""

    def heard(self, name: str, size: int) -> tuple[list[Report], TurnOver]:
        """:returns: what a dialogue says of a command's output, and of its end."""
        talk = dialogue(agent_of(name))
        talk.begin()
        talk.message("do the thing")
        reports = list(fed(talk, f"one_message/{name}", size))
        return reports, talk.ended(outcome(f"one_message/{name}"))

    def test_another_format_is_no_answer_and_shows_nothing(self) -> None:
        self.assertEqual(len(ONE_MESSAGE), 48)
        for name in ONE_MESSAGE:
            for size in SIZES:
                reports, over = self.heard(name, size)
                self.assertEqual([each for each in reports if not isinstance(each, Waiting)], [], name)
                self.assertEqual(over.answer, "", name)
                self.assertIsNotNone(over.failed, name)

    def test_waits_that_standard_error_tells_of(self) -> None:
        for name in ONE_MESSAGE:
            expected = WAITS_ON_STDERR.get(name, [])
            found = reasons(self.heard(name, 4096)[0])
            self.assertEqual([each[: len(begin)] for each, begin in zip(found, expected, strict=True)], expected, name)

    def test_failures_are_explained_by_status_and_standard_error(self) -> None:
        for name in ONE_MESSAGE:
            _, over = self.heard(name, 4096)
            ended = outcome(f"one_message/{name}")
            assert isinstance(over.failed, Failed)
            explained = failure("Agent", ended, over.failed.reason, status=over.failed.status, kind=over.failed.kind)
            self.assertEqual(explained.kind, KINDS.get(name, "failed"), name)
            first, _, _ = str(explained).partition("\n")
            words = {137: "ended by SIGKILL", 143: "ended by SIGTERM"}
            self.assertIn(words.get(ended.exit_code or 0, f"exit status {ended.exit_code}"), first, name)
