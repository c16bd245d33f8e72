from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.login import claims, expiry, is_token
from ironcurtain.accounts.login_files import FILE_LIMIT, read_login
from ironcurtain.accounts.source import ACCOUNT_ID
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.account_sections import AccountName
from tests.accounts.samples import (
    CANARY,
    CLAUDE_ACCESS,
    CLAUDE_REFRESH,
    claude_file,
    codex_file,
    google_file,
    jwt,
    opencode_file,
)

KINDS: tuple[AccountName, ...] = ("claude", "chatgpt", "google", "copilot")
FILES = {"claude": claude_file(), "chatgpt": codex_file(), "google": google_file(), "copilot": opencode_file()}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


class ReadingTests(SynchronousTestCase):
    def refused(self, kind: AccountName, data: bytes) -> str:
        error = self.assertRaises(ConfigurationError, read_login, kind, "/f.json", data)
        self.assertTrue(str(error).startswith("/f.json"), error)
        self.assertNotIn(CANARY, str(error))
        return str(error)

    def test_claude_file_gives_both_tokens_time_and_plan(self) -> None:
        login = read_login("claude", "/f.json", claude_file())
        assert login.refresh is not None
        self.assertEqual((login.access.reveal(), login.refresh.reveal()), (CLAUDE_ACCESS, CLAUDE_REFRESH))
        self.assertEqual((login.expires, login.title), (1_800_000_000.0, "Claude subscription (max)"))
        self.assertEqual(login.ends, 1_802_000_000.0)

    def test_codex_file_gives_account_owner_plan_and_the_time_in_the_token(self) -> None:
        login = read_login("chatgpt", "/f.json", codex_file())
        self.assertEqual(login.token.extra[ACCOUNT_ID].reveal(), "acc-1")
        self.assertEqual((login.expires, login.title), (1_800_000_000.0, "ChatGPT plan (plus) of ada@example.com"))

    def test_account_of_codex_is_also_read_from_its_id_token(self) -> None:
        login = read_login("chatgpt", "/f.json", codex_file(account_id=None))
        self.assertEqual(login.extra[ACCOUNT_ID].reveal(), "acc-id")

    def test_google_file_gives_token_time_and_owner(self) -> None:
        login = read_login("google", "/f.json", google_file())
        self.assertEqual(login.access.reveal(), f"ya29.{CANARY}")
        self.assertEqual((login.expires, login.title), (1_800_000_000.0, "login with Google of ada@example.com"))

    def test_opencode_file_gives_a_chatgpt_plan_and_a_github_login_that_never_expires(self) -> None:
        plan, copilot = (read_login(kind, "/f.json", opencode_file()) for kind in ("chatgpt", "copilot"))
        self.assertEqual((plan.extra[ACCOUNT_ID].reveal(), plan.expires), ("acc-1", 1_800_000_000.0))
        self.assertEqual((copilot.access.reveal(), copilot.refresh, copilot.expires), (f"gho_{CANARY}", None, None))

    def test_missing_login_names_the_command_that_logs_in(self) -> None:
        self.assertIn("run claude /login", self.refused("claude", b'{"other": {}}'))
        self.assertIn("run codex login", self.refused("chatgpt", b'{"auth_mode": "chatgpt"}'))
        self.assertIn("run opencode auth login -p openai", self.refused("chatgpt", b"{}"))
        self.assertIn("run opencode auth login -p github-copilot", self.refused("copilot", b"{}"))

    def test_blanked_tokens_are_reported_as_logged_out(self) -> None:
        self.assertIn(
            "accessToken: is logged out: run claude /login", self.refused("claude", claude_file(accessToken=""))
        )

    def test_api_keys_are_told_apart_from_logins(self) -> None:
        key = json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": CANARY}).encode()
        self.assertIn("[providers.openai]", self.refused("chatgpt", key))
        api = opencode_file(**{"github-copilot": {"type": "api", "key": CANARY}})
        self.assertIn("API key", self.refused("copilot", api))

    def test_claude_login_without_models_is_refused(self) -> None:
        self.assertIn("user:inference", self.refused("claude", claude_file(scopes=["org:create_api_key"])))

    def test_chatgpt_login_without_an_account_is_refused(self) -> None:
        self.assertIn("which account", self.refused("chatgpt", codex_file(account_id=None, id_token="")))

    def test_tokens_that_would_end_a_header_are_refused(self) -> None:
        for token in (f"{CANARY}\r\nx: y", f"{CANARY} b", f"{CANARY}\u00e4", CANARY * 2000):
            self.assertIn("is not a token", self.refused("claude", claude_file(accessToken=token)))

    def test_wrong_types_and_times_are_refused_without_the_value(self) -> None:
        for data in (claude_file(accessToken=[CANARY]), claude_file(expiresAt=CANARY), claude_file(expiresAt=1e18)):
            self.assertIn("is no file with a login", self.refused("claude", data))

    def test_large_files_and_other_json_are_refused(self) -> None:
        self.assertIn("bytes", self.refused("claude", b" " * (FILE_LIMIT + 1)))
        for data in (b"", b"[]", b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 100_000):
            self.refused("claude", data)

    @given(st.sampled_from(KINDS), st.binary(max_size=200))
    def test_any_bytes_give_a_login_or_a_sentence(self, kind: AccountName, data: bytes) -> None:
        self.refused(kind, data)

    @given(st.sampled_from(KINDS), st.data())
    def test_any_change_of_a_file_gives_a_login_or_a_sentence(self, kind: AccountName, data: st.DataObject) -> None:
        whole = json.loads(FILES[kind])
        place: Any = whole
        while True:
            name = data.draw(st.sampled_from(sorted(place)))
            if not isinstance(place[name], dict) or data.draw(st.booleans()):
                break
            place = place[name]
        place[name] = data.draw(json_values)
        try:
            login = read_login(kind, "/f.json", json.dumps(whole).encode())
        except ConfigurationError as e:
            self.assertNotIn(CANARY, str(e))
        else:
            for secret in login.secrets():
                self.assertTrue(is_token(secret.reveal()))
            self.assertTrue(login.title.isprintable())


class ClaimTests(SynchronousTestCase):
    @given(st.text() | st.binary().map(lambda data: f"a.{data.hex()}.b"))
    def test_text_that_is_no_jwt_says_nothing(self, text: str) -> None:
        self.assertIsNone(expiry(text))

    def test_only_a_sensible_time_is_an_expiry(self) -> None:
        self.assertEqual(expiry(jwt(exp=1_800_000_000)), 1_800_000_000.0)
        for wrong in (True, "1800000000", -1, 1_800_000_000_000, None, [1]):
            self.assertIsNone(expiry(jwt(exp=wrong)), wrong)
        self.assertEqual(claims(jwt(email="a"))["email"], "a")
