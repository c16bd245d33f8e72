"""Our side of the protocol towards a server."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.jsonrpc.framing import TOO_LONG
from ironcurtain.mcp_proxy.backend import (
    Garbage,
    QuestionWithdrawn,
    ServerAnswer,
    ServerConversation,
    ServerNotice,
    ServerProgress,
    ServerQuestion,
    UnreadAnswer,
)


def message(**members: Any) -> bytes:
    """:returns: one line."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


class ConversationTests(SynchronousTestCase):
    """Ids, tokens, answers, and what is none of these."""

    def setUp(self) -> None:
        self.talk: ServerConversation[str] = ServerConversation()
        self.heard: list[dict[str, Any]] = []

    def ask(self, waiter: str, params: Any = None, progress: bool = False) -> tuple[int, dict[str, Any]]:
        """:returns: our id, and the message that is sent."""
        number, line = self.talk.request(waiter, "m", params, self.heard.append if progress else None)
        self.assertTrue(line.endswith(b"\n"))
        return number, json.loads(line)

    def test_answers_find_who_waits_once(self) -> None:
        (one, _), (two, _) = self.ask("one"), self.ask("two")
        self.assertNotEqual(one, two)
        self.assertEqual(self.talk.receive(message(id=two, result={"n": 1})), ServerAnswer("two", b'{"n": 1}', None))
        error = b'{"code": 1, "message": "no"}'
        self.assertEqual(self.talk.receive(message(id=one, error=json.loads(error))), ServerAnswer("one", None, error))
        self.assertIsInstance(self.talk.receive(message(id=one, result={})), Garbage)

    def test_ids_of_no_request_answer_nothing(self) -> None:
        number, _ = self.ask("one")
        for identifier in (f"{number}x", f"0{number}", number + 1, number + 0.5, True):
            self.assertIsInstance(self.talk.receive(message(id=identifier, result={})), Garbage)
        self.assertEqual(self.talk.waiting(), [(number, "one")])

    def test_ids_that_come_back_as_text_or_fraction_are_known(self) -> None:
        for kind in (str, float):
            number, _ = self.ask("one")
            answer = self.talk.receive(message(id=kind(number), result={}))
            self.assertEqual(answer, ServerAnswer("one", b"{}", None))

    def test_questions_with_fractions_as_ids_can_be_withdrawn(self) -> None:
        self.assertEqual(self.talk.receive(message(id=1.5, method="ping")), ServerQuestion(1.5, "ping", None))
        withdrawn = self.talk.receive(message(method="notifications/cancelled", params={"requestId": 1.5}))
        self.assertEqual(withdrawn, QuestionWithdrawn(1.5))

    def test_members_that_are_null_are_missing(self) -> None:
        number, _ = self.ask("one")
        answer = self.talk.receive(message(id=number, method=None, params=None, result={}, error=None))
        self.assertEqual(answer, ServerAnswer("one", b"{}", None))
        notice = self.talk.receive(message(id=None, method="notifications/tools/list_changed", params=None))
        self.assertEqual(notice, ServerNotice("notifications/tools/list_changed", None))

    def test_unreadable_answer_ends_its_request_only(self) -> None:
        (one, _), (two, _) = self.ask("one"), self.ask("two")
        event = self.talk.receive(b'{"jsonrpc":"2.0","id":%d,"result":{"v":NaN}}' % one)
        assert isinstance(event, UnreadAnswer)
        self.assertEqual(event.waiters, ("one",))
        self.assertIn("NaN", event.detail)
        self.assertEqual(self.talk.waiting(), [(two, "two")])

    def test_batch_of_answers_ends_all_its_requests(self) -> None:
        answers = [message(id=self.ask(waiter)[0], result={}) for waiter in ("one", "two")]
        event = self.talk.receive(b"[%b,%b]" % (answers[0], answers[1]))
        assert isinstance(event, UnreadAnswer)
        self.assertEqual(event.waiters, ("one", "two"))

    def test_answer_without_an_id_is_that_of_the_only_request(self) -> None:
        self.talk.request("listening", "m", None, None, endless=True)
        self.ask("one")
        event = self.talk.receive(message(id=None, error={"code": -32700, "message": "no"}))
        self.assertEqual(event, ServerAnswer("one", None, b'{"code": -32700, "message": "no"}'))
        self.ask("two")
        self.assertEqual(self.talk.receive(b'"jsonrpc": "2.0"').waiters, ("two",))  # type: ignore[union-attr]
        self.ask("three")
        self.ask("four")
        self.assertIsInstance(self.talk.receive(b'"jsonrpc": "2.0"'), Garbage)
        self.assertEqual(len(self.talk.waiting()), 3)

    def test_logs_answer_nothing_and_are_quoted(self) -> None:
        self.ask("one")
        for junk in (b"Starting up...", b'{"level":30}', b"[1,2]", b"{"):
            event = self.talk.receive(junk)
            assert isinstance(event, Garbage)
            self.assertIn(repr(junk.decode()), event.detail)

    def test_progress_has_a_token_of_ours(self) -> None:
        number, sent = self.ask("one", {"_meta": {"kept": 1}}, progress=True)
        self.assertEqual(sent["params"]["_meta"], {"kept": 1, "progressToken": number})
        report = {"progressToken": number, "progress": 1}
        event = self.talk.receive(message(method="notifications/progress", params=report))
        assert isinstance(event, ServerProgress)
        event.notify(event.params)
        self.assertEqual(self.heard, [report])

    def test_progress_that_nobody_asked_for_is_dropped(self) -> None:
        number, sent = self.ask("one")
        self.assertNotIn("params", sent)
        done, _ = self.ask("done", progress=True)
        self.talk.receive(message(id=done, result={}))
        for token in (number, done, str(number), 99, True, None):
            line = message(method="notifications/progress", params={"progressToken": token, "progress": 1})
            self.assertIsInstance(self.talk.receive(line), Garbage)

    def test_a_cancelled_request_is_not_answered(self) -> None:
        number, _ = self.ask("one")
        line = self.talk.cancel(number, "why") or b"{}"
        self.assertEqual(json.loads(line)["params"], {"requestId": number, "reason": "why"})
        self.assertIsNone(self.talk.cancel(number, "why"))
        self.assertIsInstance(self.talk.receive(message(id=number, result={})), Garbage)

    def test_abandoned_are_all_who_wait(self) -> None:
        self.ask("one")
        self.ask("two")
        self.assertEqual(self.talk.abandon(), ["one", "two"])
        self.assertEqual(self.talk.abandon(), [])

    def test_questions_and_notices(self) -> None:
        self.assertEqual(
            self.talk.receive(message(id="q", method="roots/list")), ServerQuestion("q", "roots/list", None)
        )
        self.assertEqual(self.talk.receive(message(method="x", params={"a": 1})), ServerNotice("x", b'{"a": 1}'))
        line = message(method="notifications/cancelled", params={"requestId": 1})
        self.assertEqual(self.talk.receive(line), QuestionWithdrawn(1))
        wrong: list[Any] = [{}, {"requestId": None}, [], {"requestId": True}]
        for params in wrong:
            self.assertIsInstance(self.talk.receive(message(method="notifications/cancelled", params=params)), Garbage)

    def test_broken_characters_are_replaced_not_lost(self) -> None:
        for sent, text in (
            (b"caf\xe9", "caf\ufffd"),
            (b"a\\ud83d", "a\ufffd"),
            (b"\\ud83d\\ud83d\\ude00\\udc00", "\ufffd\U0001f600\ufffd"),
            (b"\\\\ud83d \\\\\\ud83d", "\\ud83d \\\ufffd"),
            (b"\xff\\ud800", "\ufffd\ufffd"),
        ):
            number, _ = self.ask("one")
            answer = self.talk.receive(b'{"jsonrpc":"2.0","id":%d,"result":{"text":"%b"}}' % (number, sent))
            assert isinstance(answer, ServerAnswer), sent
            self.assertEqual(json.loads(answer.result or b""), {"text": text})

    def test_no_line_end_is_passed_on(self) -> None:
        number, _ = self.ask("one")
        answer = self.talk.receive(b'{"jsonrpc":"2.0",\r"id":%d,"result":{"a":\r1}}' % number)
        assert isinstance(answer, ServerAnswer)
        self.assertEqual(answer.result, b'{"a": 1}')

    def test_junk(self) -> None:
        for junk in (b"Starting up...", b"[]", b"{", b"\xff", b"null", TOO_LONG):
            self.assertIsInstance(self.talk.receive(junk), Garbage)

    @given(st.binary(max_size=60))
    def test_no_bytes_break_it(self, line: bytes) -> None:
        self.talk.receive(line)
