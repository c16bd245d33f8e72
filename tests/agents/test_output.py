"""Whatever an agent prints, there is an answer or a clear failure."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import Adapter, TurnFailed, TurnOutcome
from ironcurtain.agents.output import (
    REASON_LIMIT,
    TAIL_LIMIT,
    count_at,
    dig,
    failure,
    objects,
    status_at,
    text_at,
)
from ironcurtain.agents.registry import BUILT_IN
from ironcurtain.mitm_proxy.admission import response
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.registry import KNOWN_PROVIDERS, OTHER

WORDS = st.sampled_from(
    (
        *("type", "subtype", "result", "init", "system", "text", "part", "message", "item", "turn.completed"),
        *("item.completed", "agent_message", "error", "errors", "data", "status", "success", "role", "assistant"),
        *("content", "mcp_servers", "stats", "tokens", "complete", "step_finish", "model_usage_since_last_result"),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=20,
)
LINES = st.lists(VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(), max_size=8).map(b"\n".join)

ENDED = TurnOutcome(1, b"", b"")


class AnyOutputTests(SynchronousTestCase):
    """No output of an agent can do anything else."""

    @given(st.sampled_from(BUILT_IN), LINES, LINES, st.integers(0, 255))
    def test_an_answer_or_a_failure(self, adapter: Adapter, stdout: bytes, stderr: bytes, exit_code: int) -> None:
        try:
            answer = adapter.answer(TurnOutcome(exit_code, stdout, stderr))
        except TurnFailed as e:
            shown = str(e)
            shown.encode()
            self.assertLess(len(shown), 5 * (REASON_LIMIT + TAIL_LIMIT))
            self.assertTrue(shown.replace("\n", "").replace("\t", "").isprintable())
        else:
            answer.text.encode()
            self.assertNotEqual(answer.text.strip(), "")

    def test_output_of_many_mebibytes(self) -> None:
        for adapter in BUILT_IN:
            junk = b"\n".join([b"{" * 100_000, b'{"type": "text"}' * 10_000, b'{"a":' * 100_000, b"x" * 1_000_000] * 2)
            self.assertRaises(TurnFailed, adapter.answer, TurnOutcome(0, junk, junk))


class ObjectTests(SynchronousTestCase):
    """Finding objects, and members in them."""

    def test_only_whole_objects(self) -> None:
        data = b'\xff{"a": 1}\n{"b": 2}\r\n [3]\n{"c": \n  {"d": "\xff"}\nnull\n{"e": 1} x'
        self.assertEqual(list(objects(data)), [{"b": 2}, {"d": "\ufffd"}])

    def test_paths(self) -> None:
        value = {"a": {"b": "text", "c": 7, "d": True, "e": -1, "f": 10**13, "g": 404}}
        self.assertEqual(dig(value, "a", "b"), "text")
        self.assertIsNone(dig(value, "a", "b", "c"))
        self.assertEqual([text_at(value, "a", "b"), text_at(value, "a", "c"), text_at(None, "a")], ["text", "", ""])
        self.assertEqual([count_at(value, "a", name) for name in "bcdef"], [0, 7, 0, 0, 0])
        self.assertEqual([status_at(value, "a", name) for name in "cg"], [None, 404])


class FailureTests(SynchronousTestCase):
    """What the person is told."""

    def test_a_refusal_by_the_mitm_proxy_is_known_in_the_shape_of_every_provider(self) -> None:
        for provider in (*KNOWN_PROVIDERS.values(), OTHER):
            body = response(RequestRefusal(403, "endpoint", "no rule lets it pass"), provider).partition(b"\r\n\r\n")[2]
            self.assertEqual(failure("Agent", ENDED, body.decode(), status=403).kind, "refused")

    def test_a_provider_that_our_proxy_cannot_reach(self) -> None:
        self.assertEqual(failure("Agent", ENDED, "IronCurtain: no connection", status=502).kind, "overloaded")

    def test_the_end_of_the_output_is_shown_where_no_reason_is_known(self) -> None:
        errors = b"\n".join(b"line %d" % number for number in range(100))
        shown = str(failure("Agent", TurnOutcome(2, b"", errors)))
        self.assertIn("exit status 2", shown)
        self.assertIn("\n  line 99", shown)
        self.assertNotIn("line 50", shown)

    def test_a_long_line_is_cut(self) -> None:
        shown = str(failure("Agent", TurnOutcome(2, b"", b"x" * 1_000_000)))
        self.assertEqual(shown.count("x" * 10), TAIL_LIMIT // 10)

    def test_without_an_error_output_what_was_printed_otherwise_is_shown(self) -> None:
        shown = str(failure("Agent", TurnOutcome(1, b'{"type": "x"}\nusage: agent\n', b"")))
        self.assertTrue(shown.endswith("\n  usage: agent"), shown)

    def test_known_reasons_stand_alone(self) -> None:
        shown = str(failure("Agent", TurnOutcome(1, b"", b"noise"), "Rate limit reached"))
        self.assertNotIn("noise", shown)
        self.assertIn("Rate limit reached", shown)

    def test_what_could_deceive_is_made_visible(self) -> None:
        shown = str(failure("Agent", TurnOutcome(1, b"", b"\x1b[2J\xe2\x80\xaegone"), "a\nb\x1b]0;title\x07"))
        self.assertTrue(shown.replace("\n", "").isprintable(), shown)
