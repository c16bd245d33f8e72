from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.view import render

EVIL = "\x1b]0;owned\x07\x1b[2J\u202ereversed\n\r\x9b31m\u200b"
HARMFUL = "\x1b\x07\n\r\x9b\u202e\u200b"

CALL = {
    "sequence": 7,
    "time": "2026-01-02T03:04:05.678Z",
    "kind": "call",
    "server": "git",
    "tool": "push",
    "decision": "escalate",
    "rule": "push",
    "arguments": {"remote": "origin"},
    "previous": "0" * 64,
}


class RenderTests(SynchronousTestCase):
    def test_a_call(self) -> None:
        line = '    7  03:04:05.678  escalate  git.push {"remote":"origin"}  [push]'
        self.assertEqual(render(CALL), line)

    def test_a_decision_names_who_made_it(self) -> None:
        record = {**CALL, "kind": "decision", "outcome": "approved", "number": 12, "by": "local:ada"}
        self.assertTrue(render(record).endswith("approved  escalation 12 by local:ada"))

    def test_a_decision_that_nobody_was_asked_for(self) -> None:
        record = {**CALL, "kind": "decision", "outcome": "approved", "number": 0, "by": "local:ada", "permission": 12}
        self.assertTrue(render(record).endswith("approved  by the permission of escalation 12, kept by local:ada"))

    def test_permissions(self) -> None:
        given = {**CALL, "kind": "permission", "number": 12, "by": "local:ada", "words": "git.push in /a and below"}
        self.assertTrue(render(given).endswith("kept      escalation 12 by local:ada: git.push in /a and below"))
        revoked = {**CALL, "kind": "permission-revoked", "number": 12, "by": "local:bob", "used": 3}
        self.assertTrue(render(revoked).endswith("revoked   escalation 12 by local:bob, used 3 times"))

    def test_an_outcome(self) -> None:
        record = {"sequence": 8, "time": "", "kind": "outcome", "status": "error", "durationMs": 12, "error": "no"}
        self.assertTrue(render(record).endswith("error     after 12 ms: no"), render(record))

    def test_nothing_from_an_agent_reaches_the_terminal_as_it_is(self) -> None:
        for kind in ("call", "decision", "outcome", "permission", "permission-revoked", "other", EVIL):
            names = "server tool rule by outcome status error number words used permission"
            record = dict.fromkeys(names.split(), EVIL)
            line = render({**record, "kind": kind, "time": EVIL, "arguments": {EVIL: EVIL}, "sequence": EVIL})
            self.assertEqual([c for c in line if c in HARMFUL], [], kind)

    def test_a_large_record_is_one_short_line(self) -> None:
        for kind in ("call", "decision", "outcome", "other"):
            huge = {name: "x" * 10**6 for name in ("server", "tool", "rule", "by", "error", "arguments", "size")}
            self.assertLess(len(render({**CALL, **huge, "kind": kind})), 1000, kind)

    @settings(deadline=None)
    @given(
        st.dictionaries(
            st.sampled_from(("kind", "time", "server", "arguments", "durationMs", "size", "error", "sequence")),
            st.none() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
        )
    )
    def test_whatever_stands_in_a_record_is_one_line(self, record: dict[str, object]) -> None:
        line = render(record)
        self.assertEqual(len(line.splitlines()), 1)
        self.assertTrue(all(c.isprintable() or unicodedata.category(c) == "Zs" for c in line))
