"""Refused requests to hosts that belong to no provider, as different programs get them."""

from __future__ import annotations

from http.client import HTTPResponse
from io import BytesIO
from typing import cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.fields import Fields
from ironcurtain.mitm_proxy.refusals import PHRASE_LIMIT, refusal_response
from ironcurtain.providers.provider import RequestRefusal

DENIED = RequestRefusal(403, "denied", "a.example is not open (rule ask-rest): ask the user")
TEXT = "IronCurtain: a.example is not open (rule ask-rest): ask the user"
INDEX = "application/vnd.pypi.simple.v1+json, text/html; q=0.01"


def read(data: bytes) -> tuple[int, str, str, str]:
    """:returns: status, phrase, type and body."""
    socket = type("Socket", (), {"makefile": lambda self, mode: BytesIO(data)})()
    response = HTTPResponse(socket)
    response.begin()
    body = response.read().decode()
    assert data.endswith(body.encode())
    return response.status, response.reason, response.headers["content-type"], body


def answer(refusal: RequestRefusal = DENIED, **headers: str) -> tuple[int, str, str, str]:
    """:returns: the response to a request with these headers."""
    return read(refusal_response(refusal, tuple((name.replace("_", "-"), text) for name, text in headers.items())))


class ClientTests(SynchronousTestCase):
    """What each program gets."""

    def test_text_and_phrase_are_the_reason(self) -> None:
        self.assertEqual(answer(user_agent="git/2.39.5"), (403, TEXT, "text/plain; charset=utf-8", f"{TEXT}\n"))

    def test_json_is_for_clients_that_accept_it(self) -> None:
        status, phrase, kind, body = answer(user_agent="npm/10.9.2", accept="application/json; q=1.0, */*")
        self.assertEqual((status, phrase, kind), (403, TEXT, "application/json"))
        self.assertEqual(msgspec.json.decode(body), {"error": TEXT, "message": TEXT})

    def test_index_page_of_pip_has_the_reason_as_its_type(self) -> None:
        status, _, kind, _ = answer(user_agent="pip/26.3 {...}", accept=INDEX)
        self.assertEqual((status, kind), (200, f"text/x-refused; {TEXT}"))
        self.assertEqual(answer(user_agent="pip/26.3 {...}", accept="*/*")[0], 403)
        self.assertEqual(answer(user_agent="other pip/26.3", accept=INDEX)[0], 403)

    def test_uv_gets_451(self) -> None:
        self.assertEqual(answer(user_agent="uv/0.13.9 {...}", accept=INDEX)[:2], (451, TEXT))

    def test_status_of_the_refusal_counts_unless_it_misleads(self) -> None:
        for asked, given_ in ((404, 404), (401, 403), (407, 403), (429, 403), (400, 400)):
            self.assertEqual(
                answer(RequestRefusal(asked, "x", "y"), user_agent="uv/1")[0] in (given_, 451), True, asked
            )
        self.assertEqual(answer(RequestRefusal(404, "x", "y"), user_agent="pip/1", accept=INDEX)[0], 404)

    def test_end_of_the_connection_is_announced(self) -> None:
        self.assertIn(b"\r\nconnection: close\r\n", refusal_response(DENIED, close=True))
        self.assertNotIn(b"connection", refusal_response(DENIED))

    def test_phrase_that_is_cut_says_so_in_ascii(self) -> None:
        reason = f"{'x' * 400} the end"
        line, _, rest = refusal_response(RequestRefusal(403, "denied", reason)).partition(b"\r\n")
        self.assertRegex(line.decode("ascii"), r"x\.\.\. \(\+[0-9]+ characters\)\Z")
        self.assertIn(reason.encode(), rest)

    @given(st.text(max_size=2000), st.sampled_from(("pip/1", "uv/1", "x")), st.sampled_from((INDEX, "a/json", "*/*")))
    def test_no_reason_breaks_the_response(self, reason: str, agent: str, accept: str) -> None:
        headers = cast(Fields, (("user-agent", agent), ("accept", accept)))
        data = refusal_response(RequestRefusal(403, "denied", reason), headers)
        head, _, body = data.partition(b"\r\n\r\n")
        self.assertEqual(len(head.split(b"\r\n")), 3)
        self.assertEqual(len(head.splitlines()), 3)
        self.assertTrue(head.isascii() and b"IronCurtain:" in head)
        self.assertLess(max(map(len, head.split(b"\r\n"))), PHRASE_LIMIT + 100)
        self.assertEqual(int(head.rpartition(b": ")[2] if head.count(b"\r\n") else b"0"), len(body))
