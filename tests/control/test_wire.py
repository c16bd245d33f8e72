"""Errors that another process tells, which may be of another host."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.control.wire import error_body, read_error
from ironcurtain.errors import NotAllowed


class ErrorTests(SynchronousTestCase):
    def test_error_arrives_as_it_was_raised(self) -> None:
        found = read_error(error_body(NotAllowed("it needs the role view:\n\tsee --roles")))
        self.assertEqual(
            (str(found), found.code, found.exit_status), ("it needs the role view:\n\tsee --roles", "NOT_ALLOWED", 77)
        )

    @given(st.text(max_size=40), st.integers())
    def test_whoever_refuses_chooses_no_success_and_no_sequences(self, text: str, status: int) -> None:
        body = {"error": {"code": "X", "message": f"\x1b]0;x\x07\u202e{text}", "exit_status": status}}
        found = read_error(json.dumps(body).encode())
        self.assertFalse({"\x1b", "\x07", "\u202e", "\x9b"} & set(str(found)))
        self.assertIn(found.exit_status, range(1, 126))

    def test_nested_deep_is_no_proper_answer(self) -> None:
        self.assertEqual(read_error(b'{"error":' + b"[" * 100_000).code, "PROTOCOL")
