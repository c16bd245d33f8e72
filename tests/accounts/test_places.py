from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.kept_account import KeptAccount
from ironcurtain.accounts.login import Login
from ironcurtain.accounts.login_files import read_login
from ironcurtain.accounts.named_login import NamedLogin
from ironcurtain.accounts.opening import AccountSurroundings, open_account
from ironcurtain.accounts.places import AccountPlace, Accounts, AccountState
from ironcurtain.accounts.source import TokenSource
from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.account_sections import AccountName, AccountSettings
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import SecretSource
from ironcurtain.secrets.redaction import Redactor, Secret
from tests.accounts.samples import CANARY, CLAUDE_ACCESS, claude_file, codex_file
from tests.accounts.support import NOW, EndingReactor, TokenServer

VARIABLE = {"CLAUDE_CODE_OAUTH_TOKEN": f"sk-ant-oat01-{CANARY}"}


class PlacesTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-accounts-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.home = Home(self.directory / "home", self.directory)

    def accounts(self, environ: dict[str, str] | None = None, **tables: AccountSettings) -> Accounts:
        return Accounts(self.home, tables, {"HOME": str(self.directory), **(environ or {})})  # type: ignore[arg-type]

    def keep(self, **changes: Any) -> None:
        file = self.accounts().kept.of("claude")
        file.lock()
        file.write(read_login("claude", str(file.path), claude_file(**changes)))

    def write(self, name: str, data: bytes) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)
        return path


class PlaceTests(PlacesTestCase):
    def test_machine_without_accounts_has_none(self) -> None:
        self.assertEqual(list(self.accounts().all()), [])
        self.assertIsNone(self.accounts().chosen("claude"))

    def test_program_logins_are_used_only_where_they_are_named(self) -> None:
        self.write(".claude/.credentials.json", claude_file())
        self.assertIsNone(self.accounts().chosen("claude"))
        place = self.accounts(claude=AccountSettings(source="cli")).chosen("claude")
        assert place is not None
        self.assertEqual((place.origin, place.shown), ("cli", "~/.claude/.credentials.json"))

    def test_first_program_file_that_exists_is_taken_and_a_named_one_before_all(self) -> None:
        self.write(".local/share/opencode/auth.json", b"{}")
        cli = AccountSettings(source="cli")
        self.assertEqual(self.accounts(chatgpt=cli).of("chatgpt")[0].shown, "~/.local/share/opencode/auth.json")
        self.write(".codex/auth.json", b"{}")
        self.assertEqual(self.accounts(chatgpt=cli).of("chatgpt")[0].shown, "~/.codex/auth.json")
        named = AccountSettings(source="cli", file="~/x.json")
        self.assertEqual(self.accounts(chatgpt=named).of("chatgpt")[0].path, self.directory / "x.json")

    def test_program_logins_that_are_not_named_are_offered(self) -> None:
        self.write(".claude/.credentials.json", claude_file(expiresAt=1000))
        self.write(".local/share/opencode/auth.json", b"{}")
        offered = [(place.name, place.shown) for place in self.accounts().unused()]
        self.assertEqual(offered, [("claude", "~/.claude/.credentials.json")])
        self.keep()
        self.assertEqual(list(self.accounts().unused()), [])

    def test_kept_login_and_variable_are_found(self) -> None:
        self.assertEqual([place.origin for place in self.accounts(VARIABLE).all()], ["token"])
        self.keep()
        self.assertEqual([place.origin for place in self.accounts().all()], ["login"])

    def test_two_accounts_are_never_chosen_between_silently(self) -> None:
        self.keep()
        error = self.assertRaises(ConfigurationError, self.accounts(VARIABLE).chosen, "claude")
        self.assertIn("there are two: ironcurtain login claude and environment variable CLAUDE_CODE_OA", str(error))
        for table in (AccountSettings(source="login"), AccountSettings(token=SecretSource(env="X"))):
            self.assertIsNotNone(self.accounts(VARIABLE, claude=table).chosen("claude"))


class StateTests(PlacesTestCase):
    def state(self, accounts: Accounts, name: AccountName = "claude") -> AccountState:
        (place,) = accounts.of(name)
        state = accounts.state(place, NOW)
        self.assertNotIn(CANARY, repr((state, place)))
        return state

    def test_kept_login_is_renewed_although_its_token_has_ended(self) -> None:
        self.keep(expiresAt=1000)
        title = "Claude subscription (max)"
        self.assertEqual(self.state(self.accounts()), AccountState(title, 1_802_000_000.0, True))
        self.keep(expiresAt=1000, refreshTokenExpiresAt=None)
        self.assertEqual(self.state(self.accounts()), AccountState(title, None, True))

    def test_kept_login_that_cannot_be_renewed_says_what_to_do(self) -> None:
        self.keep(expiresAt=1000, refreshToken=None)
        self.assertIn("run ironcurtain login claude", self.state(self.accounts()).problem)
        self.keep(refreshTokenExpiresAt=1000)
        self.assertIn("run ironcurtain login claude", self.state(self.accounts()).problem)
        file = self.accounts().kept.of("claude")
        file.write(Login("claude", Secret(CANARY), Secret(CANARY), refused=True))
        self.assertIn("run ironcurtain login claude", self.state(self.accounts()).problem)

    def test_expired_program_login_says_what_renews_it(self) -> None:
        self.write(".claude/.credentials.json", claude_file(expiresAt=1000))
        state = self.state(self.accounts(claude=AccountSettings(source="cli")))
        self.assertEqual(state.expires, 1.0)
        self.assertIn("claude /login", state.problem)

    def test_program_login_names_owner_and_time(self) -> None:
        self.write(".codex/auth.json", codex_file())
        state = self.state(self.accounts(chatgpt=AccountSettings(source="cli")), "chatgpt")
        self.assertEqual(state, AccountState("ChatGPT plan (plus) of ada@example.com", 1_800_000_000.0))

    def test_missing_files_and_variables_are_problems(self) -> None:
        for table in (
            AccountSettings(source="login"),
            AccountSettings(source="cli"),
            AccountSettings(token=SecretSource(env="NOT_SET")),
        ):
            problem = self.state(self.accounts(claude=table)).problem
            self.assertNotEqual(problem, "", table)
            self.assertNotIn(".credentials.json", problem)  # the place is named before it


class OpeningTests(PlacesTestCase):
    def opened(self, accounts: Accounts, name: AccountName = "claude") -> Deferred[TokenSource]:
        around = AccountSurroundings(EndingReactor(), TokenServer("").post, lambda: NOW, Redactor())
        place = accounts.chosen(name)
        assert isinstance(place, AccountPlace)
        return Deferred.fromCoroutine(open_account(accounts, place, around))

    def test_each_place_gives_its_source(self) -> None:
        self.keep()
        self.write(".claude/.credentials.json", claude_file())
        kept = self.successResultOf(self.opened(self.accounts()))
        named = self.successResultOf(self.opened(self.accounts(claude=AccountSettings(source="cli"))))
        self.assertIsInstance(kept, KeptAccount)
        self.assertIsInstance(named, NamedLogin)
        for source in (kept, named):
            self.assertEqual((source.kind, source.current().secret.reveal()), ("claude", CLAUDE_ACCESS))
        self.assertEqual(kept.description, "your Claude subscription (max), from ironcurtain login claude")

    def test_token_comes_from_the_variable_or_a_file(self) -> None:
        path = self.write("token", f"{CANARY}-file\n".encode())
        from_file = AccountSettings(token=SecretSource(file=str(path)))
        for accounts, value in (
            (self.accounts(VARIABLE), VARIABLE["CLAUDE_CODE_OAUTH_TOKEN"]),
            (self.accounts(claude=from_file), f"{CANARY}-file"),
        ):
            source = self.successResultOf(self.opened(accounts))
            self.assertEqual(source.current().secret.reveal(), value)
            self.assertNotIn(CANARY, source.description)
            self.failureResultOf(Deferred.fromCoroutine(source.refreshed(source.current())), Unavailable)

    def test_token_that_others_can_read_is_refused(self) -> None:
        path = self.write("token", CANARY.encode())
        path.chmod(0o644)
        table = AccountSettings(token=SecretSource(file=str(path)))
        error = self.failureResultOf(self.opened(self.accounts(claude=table)), ConfigurationError).value
        self.assertIn("accounts.claude.token", str(error))
