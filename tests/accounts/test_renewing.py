from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.login import Login, is_token
from ironcurtain.accounts.login_files import read_login
from ironcurtain.accounts.renewing import JSON, error_code, renewal_request, renewed
from ironcurtain.accounts.source import ACCOUNT_ID
from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.account_sections import AccountName
from ironcurtain.secrets.redaction import Secret
from tests.accounts.samples import CANARY, CLAUDE_REFRESH, claude_file, codex_file, google_file, jwt, opencode_file

NOW = 1_790_000_000.0
AGAIN = "ironcurtain login claude"


def login_of(kind: AccountName) -> Login:
    files = {"claude": claude_file(), "chatgpt": codex_file(), "google": google_file(), "copilot": opencode_file()}
    return read_login(kind, "/f.json", files[kind])


def answered(kind: AccountName, **fields: Any) -> Login:
    return renewed(login_of(kind), 200, json.dumps({"access_token": "new", **fields}).encode(), NOW, AGAIN)


class RequestTests(SynchronousTestCase):
    def fields(self, kind: AccountName) -> tuple[str, dict[str, str]]:
        request = renewal_request(login_of(kind))
        assert request is not None
        self.assertNotIn(CANARY, repr(request))
        body = request.body.reveal()
        parsed = json.loads(body) if request.content_type == JSON else {k: v[0] for k, v in parse_qs(body).items()}
        return request.url, parsed

    def test_claude_is_asked_with_json_and_scopes(self) -> None:
        url, fields = self.fields("claude")
        self.assertEqual(url, "https://platform.claude.com/v1/oauth/token")
        self.assertEqual((fields["grant_type"], fields["refresh_token"]), ("refresh_token", CLAUDE_REFRESH))
        self.assertEqual(fields["client_id"], "9d1c250a-e61b-44d9-88ed-5944d1962f5e")
        self.assertTrue(fields["scope"].startswith("user:profile user:inference "))

    def test_chatgpt_is_asked_with_json(self) -> None:
        url, fields = self.fields("chatgpt")
        self.assertEqual(url, "https://auth.openai.com/oauth/token")
        wanted = {"client_id", "grant_type", "refresh_reason", "refresh_token"}
        self.assertEqual((set(fields), fields["refresh_reason"]), (wanted, "proactive_expiry"))

    def test_google_is_asked_with_a_form(self) -> None:
        url, fields = self.fields("google")
        self.assertEqual(url, "https://oauth2.googleapis.com/token")
        self.assertEqual(set(fields), {"client_id", "client_secret", "grant_type", "refresh_token"})
        self.assertEqual(fields["refresh_token"], f"1//{CANARY}")

    def test_logins_without_refresh_token_have_no_request(self) -> None:
        self.assertIsNone(renewal_request(login_of("copilot")))
        self.assertIsNone(renewal_request(Login("claude", Secret("a"))))


class AnswerTests(SynchronousTestCase):
    def test_answer_gives_new_tokens_and_the_time(self) -> None:
        account = {"email_address": "ada@example.com"}
        login = answered(
            "claude", refresh_token="next", expires_in=3600, refresh_token_expires_in=7200, account=account
        )
        self.assertEqual(login.ends, NOW + 7200)
        assert login.refresh is not None
        self.assertEqual((login.access.reveal(), login.refresh.reveal()), ("new", "next"))
        self.assertEqual((login.expires, login.owner, login.plan), (NOW + 3600, "ada@example.com", "max"))

    def test_refresh_token_that_is_not_replaced_is_kept(self) -> None:
        for unusable in ({}, {"refresh_token": None}, {"refresh_token": ""}, {"refresh_token": "a b"}):
            login = answered("claude", expires_in=3600, **unusable)
            assert login.refresh is not None
            self.assertEqual(login.refresh.reveal(), CLAUDE_REFRESH)

    def test_new_refresh_token_is_kept_although_the_rest_is_unusual(self) -> None:
        for field, value in (
            ("expires_in", "soon"),
            ("expires_in", -1),
            ("account", [1]),
            ("refresh_token_expires_in", []),
            ("id_token", 7),
        ):
            login = answered("claude", **{"refresh_token": "next", field: value})
            assert login.refresh is not None
            self.assertEqual((login.refresh.reveal(), login.expires), ("next", None))

    def test_time_of_chatgpt_is_that_of_its_token_and_the_account_stays(self) -> None:
        fresh = jwt(exp=1_795_000_000)
        login = answered("chatgpt", access_token=fresh, refresh_token="next", id_token=jwt(email="new@example.com"))
        self.assertEqual((login.access.reveal(), login.expires), (fresh, 1_795_000_000.0))
        self.assertEqual(
            (login.extra[ACCOUNT_ID].reveal(), login.owner, login.plan), ("acc-1", "new@example.com", "plus")
        )

    def test_refused_refresh_token_names_the_command_that_logs_in(self) -> None:
        for status, said in (
            (400, {"error": "invalid_grant", "error_description": CANARY}),
            (401, {"error": {"code": "refresh_token_reused", "message": CANARY}}),
        ):
            body = json.dumps(said).encode()
            error = self.assertRaises(ConfigurationError, renewed, login_of("claude"), status, body, NOW, AGAIN)
            self.assertIn(f"run {AGAIN}", str(error))
            self.assertNotIn(CANARY, str(error))

    def test_other_failures_are_temporary(self) -> None:
        for status, body in (
            (500, b""),
            (429, b'{"error": "rate_limited"}'),
            (404, b"<html>"),
            (401, b"{}"),
            (200, b"{}"),
            (302, b""),
        ):
            error = self.assertRaises(Unavailable, renewed, login_of("google"), status, body, NOW, AGAIN)
            self.assertIn("oauth2.googleapis.com", str(error))

    @given(
        st.integers(100, 599),
        st.binary(max_size=200) | st.text(max_size=50).map(lambda t: json.dumps({"error": t}).encode()),
    )
    def test_any_answer_gives_a_login_or_an_error(self, status: int, body: bytes) -> None:
        try:
            renewed(login_of("chatgpt"), status, body, NOW, AGAIN)
        except (ConfigurationError, Unavailable) as e:
            self.assertTrue(str(e).isprintable())
        self.assertTrue(error_code(body).isascii())

    @given(
        st.fixed_dictionaries(
            {"access_token": st.text(max_size=9) | st.integers()},
            optional={
                "refresh_token": st.text(max_size=9) | st.none(),
                "expires_in": st.floats() | st.text(max_size=3),
                "id_token": st.text(max_size=9),
                "account": st.lists(st.integers(), max_size=1),
            },
        )
    )
    def test_only_tokens_that_can_be_sent_are_taken(self, answer: dict[str, Any]) -> None:
        try:
            login = renewed(login_of("claude"), 200, json.dumps(answer).encode(), NOW, AGAIN)
        except Unavailable:
            return
        self.assertTrue(all(is_token(secret.reveal()) for secret in login.secrets()))
