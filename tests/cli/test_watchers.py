"""The commands for watchers, and what ``doctor`` says of them."""

from __future__ import annotations

from pathlib import Path

from ironcurtain.cli.doctor_watchers import watchers
from ironcurtain.cli.findings import HINT, OK, WRONG
from ironcurtain.errors import ConfigurationError, NotFound
from ironcurtain.home.layout import Home
from ironcurtain.watchers.record import Records, Run
from tests.cli.test_commands import CommandCase

TIMES = '[watchers.tick]\ntrigger = "schedule"\nevery = "1h"\ninstruction = "x"\n'
SEEN = '[watchers.seen]\ntrigger = "screen_change"\napp = "editor"\ninstruction = "x"\n'


class WatchersCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.home.mkdir(mode=0o700)
        self.environ |= {"DISPLAY": "", "SWAYSOCK": "", "WAYLAND_DISPLAY": ""}
        self.records = Records(self.home / "watchers")

    def write(self, text: str) -> None:
        path = self.home / "watchers.toml"
        path.write_text(text)
        path.chmod(0o600)


class CommandTests(WatchersCase):
    def test_without_a_file_there_are_none(self) -> None:
        for command in ("list", "check"):
            result = self.run_command("watchers", command)
            self.assertEqual((result.exit_code, result.output[:12]), (0, "No watchers."))

    def test_state_and_last_run_are_listed(self) -> None:
        self.write(TIMES)
        with self.records.change("tick") as record:
            record.last, record.missed, record.failures = Run(at=0.0, session=7, error="no\x1b[2Jmodel"), 3, 1
        (row,) = self.json("watchers", "list")
        self.assertEqual((row["session"], row["missed"], row["failures"]), (7, 3, 1))
        self.assertEqual(row["state"], "not followed: no daemon runs; failed: no\\x1b[2Jmodel; missed 3")
        self.assertIn("failed, session 7", self.run_command("watchers", "list").output)

    def test_pause_and_resume(self) -> None:
        self.write(TIMES)
        self.assertEqual(self.run_command("watchers", "pause", "tick").exit_code, 0)
        self.assertIn("paused: by ", self.run_command("watchers", "list").output)
        self.assertTrue(self.records.read("tick").paused)
        self.assertIn("is resumed", self.run_command("watchers", "resume", "tick").output)
        self.assertFalse(self.records.read("tick").paused)
        self.assertIn("was not paused", self.run_command("watchers", "resume", "tick").output)

    def test_unknown_name_is_an_error(self) -> None:
        self.write(TIMES)
        for command in ("pause", "resume", "test"):
            self.assertIsInstance(self.run_command("watchers", command, "tock").exception, NotFound)

    def test_check_names_what_cannot_watch(self) -> None:
        self.write(TIMES + SEEN)
        result = self.run_command("watchers", "check")
        self.assertEqual(result.exit_code, 69)
        self.assertIn("ok     tick: every 3600 s: builtin, at most 6 times an hour, asks policy", result.output)
        self.assertIn("wrong  seen: ", result.output)

    def test_check_names_a_workspace_that_no_session_would_take(self) -> None:
        for place, why in ((self.home / "no-such", "cannot be used"), (self.home, "must not contain each other")):
            self.write(f'{TIMES}workspace = "{place}"\n')
            result = self.run_command("watchers", "check")
            self.assertEqual(result.exit_code, 69)
            self.assertIn(why, result.output)

    def test_check_names_what_is_in_the_home(self) -> None:
        self.write(f'[watchers.own]\ntrigger = "file_change"\npath = "{self.home}/logs"\ninstruction = "x"\n')
        (self.home / "logs").mkdir(exist_ok=True)
        result = self.run_command("watchers", "check")
        self.assertEqual(result.exit_code, 69)
        self.assertIn("home, which is not watched", result.output)

    def test_file_that_others_may_write_is_refused_everywhere(self) -> None:
        self.write(TIMES)
        (self.home / "watchers.toml").chmod(0o666)
        for words in (("watchers", "list"), ("watchers", "pause", "tick"), ("watch", "--watcher", "tick")):
            self.assertIsInstance(self.run_command(*words).exception, ConfigurationError)
        self.assertEqual(self.run_command("config", "check").exit_code, 78)

    def test_wrong_words_are_wrong_usage(self) -> None:
        self.write(TIMES)
        for words in ((), (" ",), ("--agent", "nobody", "x"), ("--watcher", "tick"), ("--watcher", "tick", "more")):
            self.assertEqual(self.run_command("watch", *words).exit_code, 2, words)


class DoctorTests(WatchersCase):
    def test_each_watcher_and_the_limits_of_the_kernel(self) -> None:
        self.write(
            f'{TIMES}{SEEN}[watchers.files]\ntrigger = "file_change"\npath = "{self.person}"\ninstruction = "x"\n'
            f"{TIMES.replace('tick', 'tock')}"
        )
        with self.records.change("tick") as record:
            record.pause(0.0, "3 runs in a row failed")
        with self.records.change("tock") as record:
            record.trouble = "no more watches"
        found = {finding.what: finding for finding in watchers(Home(self.home, Path("/nowhere")))}
        states = {what: finding.state for what, finding in found.items() if what.startswith("watcher ")}
        expected = {"watcher tick": HINT, "watcher seen": WRONG, "watcher files": OK, "watcher tock": HINT}
        self.assertEqual(states, expected)
        self.assertIn("ironcurtain watchers resume tick", found["watcher tick"].mend)
        self.assertIn("directories", found["watches of files"].detail)
