"""Whatever an agent's program prints, a dialogue goes on, and says the same in any slicing."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.outcome import AgentAnswer, TurnFailed, TurnOutcome
from ironcurtain.agents.registry import BUILT_IN
from ironcurtain.agents.streams.dialogue import Dialogue, WholeOutput
from ironcurtain.agents.streams.reading import (
    ID_LIMIT,
    OPEN_LIMIT,
    WHAT_LIMIT,
    Collected,
    count_at,
    dig,
    parsed,
    status_at,
    text_at,
)
from ironcurtain.agents.streams.reports import (
    Named,
    Outgoing,
    Report,
    Text,
    ToolFinished,
    ToolStarted,
    TurnOver,
    Waiting,
)
from ironcurtain.text.diffs import DIFF_LIMIT
from tests.agents.streams.replaying import RECORDINGS, dialogue, recording

AGENTS = tuple(adapter.id for adapter in BUILT_IN)

WORDS = st.sampled_from(
    (
        *("type", "subtype", "result", "init", "system", "text", "message", "assistant", "user", "content", "id"),
        *("stream_event", "event", "content_block_delta", "delta", "tool_use", "tool_result", "tool_use_result"),
        *("structuredPatch", "api_retry", "retry_delay_ms", "is_error", "method", "params", "item/started", "item"),
        *("item/completed", "agentMessage", "commandExecution", "turn/completed", "turn", "status", "completed"),
        *("fileChange", "changes", "mcpToolCall", "error", "session/update", "update", "sessionUpdate", "tool_call"),
        *("tool_call_update", "toolCallId", "rawInput", "diff", "agent_message_chunk", "stopReason", "end_turn"),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=20,
)
LINES = st.lists(VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(), max_size=8).map(b"\n".join)


def agent_of(name: str) -> str:
    """:returns: the agent that a recording is of."""
    return next(agent for agent in AGENTS if name.startswith(agent))


def said(talk: Dialogue, *pieces: bytes) -> list[Report]:
    """:returns: what a dialogue makes of output in these pieces; it has begun, and a message was sent."""
    reports: list[Report] = [Outgoing(talk.begin()), Outgoing(talk.message("hello"))]
    for piece in pieces:
        reports += talk.output(piece)
    return reports


class AnyOutputTests(SynchronousTestCase):
    @settings(deadline=None, max_examples=40)
    @given(st.sampled_from(sorted(path.stem for path in RECORDINGS.glob("*.txt"))), st.lists(st.integers(0, 60_000)))
    def test_any_slicing_says_the_same(self, name: str, cuts: list[int]) -> None:
        stream = b"".join(f"{line.text}\n".encode() for line in recording(name) if line.channel == "o")
        ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
        pieces = [stream[start:end] for start, end in pairwise(ends)]
        agent = agent_of(name)
        self.assertEqual(said(dialogue(agent), *pieces), said(dialogue(agent), stream))

    @given(st.sampled_from(AGENTS), LINES, st.text())
    def test_garbage_raises_nothing_and_is_bounded(self, agent: str, stdout: bytes, line: str) -> None:
        talk = dialogue(agent)
        reports = [*said(talk, stdout, b"\n"), *talk.error_line(line), talk.ended(TurnOutcome(1, b"", b""))]
        for report in reports:
            if isinstance(report, ToolStarted | ToolFinished):
                report.what.encode()
                self.assertLessEqual(len(report.what), WHAT_LIMIT + 30)
            if isinstance(report, Text | TurnOver):
                (report.text if isinstance(report, Text) else report.answer).encode()
            if isinstance(report, Waiting):
                self.assertGreaterEqual(report.seconds, 0)

    def test_lines_of_megabytes_are_read_or_skipped(self) -> None:
        for agent in AGENTS:
            talk = dialogue(agent)
            huge = json.dumps({"type": "user", "message": {"content": "x" * 3_000_000}}).encode()
            said(talk, huge, b"\n", b"x" * 9_000_000, b"\n", b'{"a":' * 100_000, b"\n")

    def test_a_huge_line_has_its_diff_shortened(self) -> None:
        text = "".join(f"line {number}\n" for number in range(300_000))
        result = {"type": "create", "filePath": "/f", "content": text}
        content = [{"type": "tool_result", "tool_use_id": "t", "content": "written"}]
        line = json.dumps({"type": "user", "message": {"content": content}, "tool_use_result": result}).encode()
        [*_, finished] = said(dialogue("claude-code"), line + b"\n")
        assert isinstance(finished, ToolFinished)
        self.assertLess(len(finished.diff), 2 * DIFF_LIMIT)
        self.assertIn("/f", finished.diff)


def tool_line(agent: str, identity: str) -> bytes:
    """:returns: the line by which an agent says that one of its tools begins."""
    update = {"sessionUpdate": "tool_call", "toolCallId": identity, "status": "in_progress", "kind": "execute"}
    item = {"method": "item/started", "params": {"item": {"id": identity, "type": "commandExecution"}}}
    used = {"type": "tool_use", "id": identity, "name": "Bash", "input": {}}
    lines: dict[str, Any] = {
        "claude-code": {"type": "assistant", "message": {"content": [used]}},
        "codex": item,
        "opencode": {"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}},
    }
    return json.dumps(lines[agent]).encode() + b"\n"


class IdTests(SynchronousTestCase):
    """Ids of tools and conversations, which the program chooses."""

    def started(self, agent: str, *identities: str) -> list[str]:
        lines = (tool_line(agent, identity) for identity in identities)
        opened = [json.dumps({"id": n, "result": {"sessionId": "s"}}).encode() + b"\n" for n in (1, 2, 3)]
        begun = opened if agent == "opencode" else []
        return [each.tool_id for each in said(dialogue(agent), *begun, *lines) if isinstance(each, ToolStarted)]

    def test_tools_with_long_ids_are_left_out(self) -> None:
        for agent in ("claude-code", "codex", "opencode"):
            fitting, long = "x" * ID_LIMIT, "y" * (ID_LIMIT + 1)
            self.assertEqual(self.started(agent, long, fitting, long * 1000), [fitting], agent)

    def test_number_of_open_tools_is_bounded(self) -> None:
        for agent in ("claude-code", "codex", "opencode"):
            self.assertEqual(len(self.started(agent, *(f"t{n}" for n in range(2 * OPEN_LIMIT)))), OPEN_LIMIT, agent)

    def test_conversation_with_a_long_id_is_not_named(self) -> None:
        for length, named in ((ID_LIMIT, [Named("s" * ID_LIMIT)]), (ID_LIMIT + 1, [])):
            line = json.dumps({"type": "system", "subtype": "init", "session_id": "s" * length})
            reports = said(dialogue("claude-code"), line.encode() + b"\n")
            self.assertEqual([each for each in reports if isinstance(each, Named)], named)


class WholeOutputTests(SynchronousTestCase):
    """A program whose output is its answer."""

    def test_the_answer_or_the_failure_comes_with_its_end(self) -> None:
        def answer(outcome: TurnOutcome) -> AgentAnswer:
            if outcome.exit_code:
                raise TurnFailed("failed", "no")
            return AgentAnswer(outcome.stdout.decode())

        talk = WholeOutput(answer)
        self.assertEqual(talk.message("hi"), b"hi")
        self.assertEqual(list(talk.output(b"yes")), [])
        self.assertEqual(talk.ended(TurnOutcome(0, b"yes", b"")), TurnOver("yes"))
        failed = talk.ended(TurnOutcome(1, b"", b"")).failed
        self.assertIsInstance(failed, TurnFailed)


class ReadingTests(SynchronousTestCase):
    """Values of JSON that others wrote."""

    def test_only_objects_are_read(self) -> None:
        lines = (b'\xff{"a": 1}', b'{"b": 2}', b" [3]", b'{"d": "\xff"}', b"null", b'{"e": 1} x')
        self.assertEqual([parsed(line) for line in lines], [None, {"b": 2}, None, {"d": "\ufffd"}, None, None])

    def test_paths(self) -> None:
        value: Any = {"a": {"b": "text", "c": 7, "d": True, "e": -1, "f": 10**13, "g": 404}}
        self.assertEqual(dig(value, "a", "b"), "text")
        self.assertIsNone(dig(value, "a", "b", "c"))
        self.assertEqual([text_at(value, "a", "b"), text_at(value, "a", "c"), text_at(None, "a")], ["text", "", ""])
        self.assertEqual([count_at(value, "a", name) for name in "bcdef"], [0, 7, 0, 0, 0])
        self.assertEqual([status_at(value, "a", name) for name in "cg"], [None, 404])


class CollectedTests(SynchronousTestCase):
    """:class:`Collected`"""

    @given(st.lists(st.text()))
    def test_it_is_all_pieces(self, pieces: list[str]) -> None:
        collected = Collected()
        for piece in pieces:
            collected.add(piece)
        self.assertEqual((str(collected), bool(collected)), ("".join(pieces), any(pieces)))

    def test_beginning_of_a_flood_is_kept(self) -> None:
        from ironcurtain.agents.streams import reading

        self.patch(reading, "LINE_LIMIT", 10)
        collected = Collected()
        for _ in range(3):
            collected.add("abcd")
        self.assertEqual(str(collected), "abcdabcdab")
        collected.clear()
        self.assertEqual((str(collected), bool(collected)), ("", False))
