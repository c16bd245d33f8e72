from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.escalation import Escalation, Outcome
from ironcurtain.escalation.files import (
    BY_LIMIT,
    FileResponse,
    read_response,
    request_file,
    request_name,
    response_id,
    response_name,
)
from tests.escalation.doubles import make_request


class RequestTests(SynchronousTestCase):
    def test_it_has_every_documented_member(self) -> None:
        request = make_request({"remote": "origin", "force": True})
        content = json.loads(request_file(Escalation("ab12", 7, request, 1.5e9, 1.5e9 + 300)))
        self.assertEqual(
            content,
            {
                "escalationId": "ab12",
                "serverName": "git",
                "toolName": "push",
                "arguments": {"remote": "origin", "force": True},
                "reason": "leaves this machine",
                "number": 7,
                "sessionId": "s1",
                "rule": "push",
                "argumentsDigest": request.digest,
                "policyVersion": "v1",
                "raisedAt": "2017-07-14T02:40:00.000Z",
                "expiresAt": "2017-07-14T02:45:00.000Z",
                "calls": 1,
                "approvals": 1,
                "approvedBy": [],
            },
        )

    def test_names(self) -> None:
        self.assertEqual((request_name("ab12"), response_name("ab12")), ("request-ab12.json", "response-ab12.json"))
        self.assertEqual(response_id("response-ab12.json"), "ab12")
        others = (
            "request-ab12.json",
            "response-.json",
            "response-../x.json",
            "response-ab12.json.tmp",
            ".response-a.json",
        )
        for name in others:
            self.assertIsNone(response_id(name), name)


class ResponseTests(SynchronousTestCase):
    def test_the_smallest_answers(self) -> None:
        self.assertEqual(read_response("f", b'{"decision":"approved"}'), FileResponse(Outcome.APPROVED, None, ""))
        self.assertEqual(read_response("f", b'{"decision":"denied"}'), FileResponse(Outcome.DENIED, None, ""))

    def test_all_members_and_unknown_ones(self) -> None:
        data = b'{"decision":"approved","argumentsDigest":"d1","by":"ada","note":{"x":1}}\n'
        self.assertEqual(read_response("f", data), FileResponse(Outcome.APPROVED, "d1", "ada"))

    def test_only_the_exact_word_approves(self) -> None:
        for word in ("Approved", "approve", "yes", "approved ", "APPROVED", "expired", ""):
            response = read_response("f", json.dumps({"decision": word}).encode())
            self.assertEqual(response.outcome, Outcome.DENIED, word)

    def test_who_answered_is_safe_to_show(self) -> None:
        evil = "ada\x1b[2J\n\u202e" + "x" * 50_000
        response = read_response("f", json.dumps({"decision": "approved", "by": evil}).encode())
        self.assertLess(len(response.by), BY_LIMIT + 40)
        self.assertTrue(response.by.isprintable())

    def test_what_is_no_answer(self) -> None:
        for data in (
            b"",
            b"{",
            b'{"decision":',
            b"[]",
            b"null",
            b'{"decision":true}',
            b"{}",
            b"\xff" * 9,
            b"[" * 10**5,
        ):
            self.assertRaises(ConfigurationError, read_response, "f", data)

    def test_a_member_that_stands_twice_is_named(self) -> None:
        with self.assertRaisesRegex(ConfigurationError, '"decision" occurs twice'):
            read_response("f", b'{"decision":"denied","decision":"approved"}')

    def test_no_part_of_an_answer_approves(self) -> None:
        whole = b'{"by":"ada","decision":"approved","argumentsDigest":"0123"}'
        for length in range(len(whole)):
            self.assertRaises(ConfigurationError, read_response, "f", whole[:length])

    @settings(deadline=None)
    @given(st.binary(max_size=60))
    def test_no_accident_approves(self, data: bytes) -> None:
        try:
            response = read_response("f", data)
        except ConfigurationError:
            return
        self.assertTrue(response.outcome is Outcome.DENIED or b"approved" in data)
