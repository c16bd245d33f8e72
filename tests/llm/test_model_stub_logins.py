"""The halves of the stub for logins: Google's Code Assist API, and GitHub Copilot."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.llm.test_model_stub_dialects import ASK, EVERYTHING, body, said
from tests.model_stub import code_assist, copilot, google
from tests.model_stub.dialect import Asked, Invalid

TURN = "/v1internal:streamGenerateContent"
JSON = {"content-type": "application/json"}


def asked(path: str = TURN, **changes: Any) -> Asked:
    request = {"contents": [ASK], "session_id": "1"}
    outer = {"model": "m", "project": code_assist.PROJECT, "user_prompt_id": "1", "request": request, **changes}
    return code_assist.asked(path, {}, json.dumps(outer).encode())


class CodeAssistTests(SynchronousTestCase):
    def test_request_is_that_of_the_gemini_api_in_an_envelope(self) -> None:
        found = asked()
        self.assertEqual((found.model, found.said, found.stream, found.counting), ("m", "Hi", True, False))
        self.assertEqual(found.body, {"contents": [ASK]})

    def test_request_for_a_count_names_no_project(self) -> None:
        path, request = "/v1internal:countTokens", {"model": "models/m", "contents": [ASK]}
        found = code_assist.asked(path, {}, body(request=request))
        self.assertEqual((found.model, found.counting), ("m", True))

    def test_another_project_and_unknown_fields_are_refused(self) -> None:
        for changes, status in (
            ({"project": "other"}, 403),
            ({"enabled_credit_types": ["x"]}, 400),
            ({"request": {"contents": [ASK], "colour": "red"}}, 400),
        ):
            with self.assertRaises(Invalid) as caught:
                asked(**changes)
            self.assertEqual(caught.exception.status, status, changes)

    def test_each_event_is_one_of_the_gemini_api_in_an_envelope(self) -> None:
        inner = [said(event) for event in google.events(EVERYTHING, "m", 1)]
        self.assertEqual([said(event)["response"] for event in code_assist.events(EVERYTHING, "m", 1)], inner)
        self.assertEqual(json.loads(code_assist.whole(EVERYTHING, "m", 1))["traceId"], "stub00000001")

    def test_only_the_token_as_bearer_is_accepted(self) -> None:
        keys = frozenset(("ya29.real",))
        code_assist.check_headers({**JSON, "authorization": "Bearer ya29.real"}, keys)
        for headers in ({"authorization": "Bearer ya29.other"}, {"x-goog-api-key": "ya29.real"}, {}):
            with self.assertRaises(Invalid) as caught:
                code_assist.check_headers({**JSON, **headers}, keys)
            self.assertEqual(caught.exception.status, 401)


class CopilotTests(SynchronousTestCase):
    def test_token_is_githubs_own_and_further_headers_are_demanded(self) -> None:
        keys = frozenset(("gho_real",))
        good = {**JSON, "authorization": "Bearer gho_real", "x-initiator": "user", "openai-intent": "x"}
        copilot.check_headers(good, keys)
        for name, value, status in (
            ("authorization", "Bearer gho_other", 401),
            ("x-initiator", "nobody", 400),
            ("openai-intent", "", 400),
        ):
            with self.assertRaises(Invalid) as caught:
                copilot.check_headers({**good, name: value}, keys)
            self.assertEqual(caught.exception.status, status, name)
