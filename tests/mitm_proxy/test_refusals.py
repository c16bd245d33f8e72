from __future__ import annotations

from http.client import HTTPResponse
from io import BytesIO
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.admission import response
from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.google import GOOGLE
from ironcurtain.providers.openai import OPENAI
from ironcurtain.providers.provider import ModelProvider, RequestRefusal
from ironcurtain.providers.registry import KNOWN_PROVIDERS, OTHER

KNOWN = {**KNOWN_PROVIDERS, "other": OTHER}
DENIED = RequestRefusal(403, "endpoint-not-allowed", "GET /v1/files is not among the requests allowed to anthropic")


class Received:
    """What :class:`HTTPResponse` takes for a socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> BytesIO:
        return BytesIO(self._data)


def read(data: bytes) -> tuple[HTTPResponse, Any]:
    response = HTTPResponse(Received(data))  # type: ignore[arg-type]
    response.begin()
    body = response.read()
    assert data.endswith(b"\r\n\r\n" + body)
    return response, msgspec.json.decode(body)


class ResponseTests(SynchronousTestCase):
    def test_the_body_has_the_shape_of_the_providers_errors(self) -> None:
        message = f"IronCurtain: {DENIED.reason}"
        bodies: dict[str, Any] = {
            "anthropic": {"type": "error", "error": {"type": "permission_error", "message": message}},
            "openai": {
                "error": {
                    "message": message,
                    "type": "invalid_request_error",
                    "param": None,
                    "code": "endpoint-not-allowed",
                }
            },
            "google": {"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED"}},
            "other": {"error": {"code": "endpoint-not-allowed", "message": message}},
        }
        for name, body in bodies.items():
            self.assertEqual(read(response(DENIED, KNOWN[name]))[1], body)

    def test_the_types_follow_the_status(self) -> None:
        for status, kind in (
            (400, "invalid_request_error"),
            (413, "request_too_large"),
            (415, "invalid_request_error"),
        ):
            self.assertEqual(read(response(RequestRefusal(status, "x", "x"), ANTHROPIC))[1]["error"]["type"], kind)
        self.assertEqual(
            read(response(RequestRefusal(400, "x", "x"), GOOGLE))[1]["error"]["status"], "INVALID_ARGUMENT"
        )

    def test_clients_are_told_not_to_try_again_unless_it_may_help(self) -> None:
        self.assertEqual(read(response(DENIED, OPENAI))[0].getheader("x-should-retry"), "false")
        self.assertIsNone(read(response(RequestRefusal(503, "x", "x"), OPENAI))[0].getheader("x-should-retry"))

    def test_it_says_whether_the_connection_ends(self) -> None:
        self.assertNotIn(b"connection:", response(DENIED, OPENAI))
        self.assertIn(b"\r\nconnection: close\r\n", response(DENIED, OPENAI, close=True))

    def test_a_426_names_the_protocol_that_is_spoken(self) -> None:
        upgrade = RequestRefusal(426, "upgrade", "connections are not upgraded here")
        data = response(upgrade, OPENAI)
        self.assertTrue(data.startswith(b"HTTP/1.1 426 Upgrade Required\r\n"))
        self.assertIn(b"\r\nupgrade: HTTP/1.1\r\n", data)
        self.assertIn(b"\r\nconnection: upgrade\r\n", data)
        self.assertIn(b"\r\nconnection: upgrade, close\r\n", response(upgrade, OPENAI, close=True))

    @given(st.text(max_size=2000), st.sampled_from(list(KNOWN.values())))
    def test_no_reason_breaks_the_answer(self, reason: str, provider: ModelProvider) -> None:
        data = response(RequestRefusal(403, "x", reason.encode("utf-8", "replace").decode()), provider)
        self.assertIn("IronCurtain: ", read(data)[1]["error"]["message"])

    def test_a_reason_is_cut(self) -> None:
        self.assertLess(len(response(RequestRefusal(403, "x", "x" * 100_000), OTHER)), 1000)
