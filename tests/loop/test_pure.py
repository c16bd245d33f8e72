"""The parts of a loop that only decide."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.looping import SHOWN, rows, sentence
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.loop.config import LoopSettings, SettingsLayer, configured, read_file, values_of
from ironcurtain.loop.host import ARGUMENT_LIMIT, BACKENDS, PROMPT, known_command, prepare
from ironcurtain.loop.iteration import IdleTimer
from ironcurtain.loop.model import (
    Iteration,
    IterationMode,
    LoopEnding,
    LoopLimits,
    LoopState,
    RunOutcome,
    choose_mode,
    loop_end,
)
from ironcurtain.loop.state import TOLD_LIMIT, Journal, read_prompt, read_state, with_events
from ironcurtain.terminal.echo import LoopEvent
from tests.audit.doubles import scratch

WHEN = "2030-01-01T00:00:00Z"


def state(*outcomes: RunOutcome, seconds: float = 1.0, cost: float | None = None) -> LoopState:
    """:returns: a loop with these iterations."""
    return LoopState(
        iterations=tuple(
            Iteration(number=number, outcome=outcome, started_at=WHEN, seconds=seconds, cost=cost)
            for number, outcome in enumerate(outcomes, 1)
        )
    )


class ModeTests(SynchronousTestCase):
    """Settings and flags."""

    def test_the_table(self) -> None:
        for setting, interactive, flags, mode in (
            (False, True, (), IterationMode.HEADLESS),
            (False, True, ("pty",), IterationMode.INTERACTIVE),
            (False, True, ("pty", "observe"), IterationMode.OBSERVE),
            (False, True, ("observe",), IterationMode.OBSERVE),
            (True, True, (), IterationMode.INTERACTIVE),
            (True, True, ("observe",), IterationMode.OBSERVE),
            (True, True, ("no_pty",), IterationMode.HEADLESS),
            (True, False, (), IterationMode.OBSERVE),
            (True, False, ("pty",), IterationMode.INTERACTIVE),
            (False, False, (), IterationMode.HEADLESS),
            (False, False, ("pty",), IterationMode.INTERACTIVE),
        ):
            chosen = choose_mode(setting, interactive, **dict.fromkeys(flags, True))
            self.assertEqual(chosen, mode, (setting, interactive, flags))

    def test_flags_that_contradict_each_other(self) -> None:
        for flags in ({"pty": True}, {"observe": True}, {"pty": True, "observe": True}):
            with self.assertRaises(UsageError):
                choose_mode(True, True, no_pty=True, **flags)


class IdleTests(SynchronousTestCase):
    """A timer that others start again."""

    def test_it_runs_from_the_last_activity(self) -> None:
        idle = IdleTimer(30, 100)
        self.assertEqual((idle.left(100), idle.left(129)), (30, 1))
        idle.active(129)
        self.assertEqual((idle.left(158.5), idle.left(159), idle.left(1000)), (0.5, 0, 0))

    def test_never(self) -> None:
        self.assertIsNone(IdleTimer(0, 100).left(10**9))

    @given(st.floats(0.1, 100), st.lists(st.floats(0, 1000)), st.floats(0, 2000))
    def test_only_the_latest_counts(self, limit: float, times: list[float], now: float) -> None:
        idle = IdleTimer(limit, 0)
        for time in times:
            idle.active(time)
        self.assertEqual(idle.left(now) == 0, max([0.0, *times]) + limit <= now)


class CourseTests(SynchronousTestCase):
    """When a loop is over."""

    def ending(self, state: LoopState, limits: LoopLimits, first: int = 1) -> LoopEnding | None:
        found = loop_end(state, limits, first)
        return found and found[0]

    def test_nothing_has_happened(self) -> None:
        self.assertIsNone(self.ending(LoopState(), LoopLimits(1)))

    def test_the_promise(self) -> None:
        self.assertEqual(self.ending(state(RunOutcome.DONE, RunOutcome.PROMISE), LoopLimits(1)), LoopEnding.PROMISE)

    def test_iterations(self) -> None:
        self.assertIsNone(self.ending(state(RunOutcome.DONE), LoopLimits(2)))
        self.assertEqual(self.ending(state(RunOutcome.DONE, RunOutcome.IDLE), LoopLimits(2)), LoopEnding.LIMIT)
        one = loop_end(state(RunOutcome.DONE), LoopLimits(1))
        self.assertEqual(one, (LoopEnding.LIMIT, "the limit of 1 iteration is reached"))

    def test_time_and_cost(self) -> None:
        done = state(RunOutcome.DONE, RunOutcome.DONE, seconds=5, cost=0.5)
        self.assertIsNone(self.ending(done, LoopLimits(9, seconds=10.1, cost=1.01)))
        self.assertEqual(self.ending(done, LoopLimits(9, seconds=10)), LoopEnding.LIMIT)
        self.assertEqual(self.ending(done, LoopLimits(9, cost=1)), LoopEnding.LIMIT)

    def test_failures_in_a_row(self) -> None:
        failed, done = RunOutcome.FAILED, RunOutcome.DONE
        self.assertEqual(self.ending(state(done, failed, failed), LoopLimits(9, failures=2)), LoopEnding.FAILURES)
        self.assertIsNone(self.ending(state(failed, done, failed), LoopLimits(9, failures=2)))
        self.assertIsNone(self.ending(state(failed, RunOutcome.IDLE), LoopLimits(9, failures=1)))

    def test_failures_before_it_was_resumed_are_forgotten(self) -> None:
        failed = state(RunOutcome.FAILED, RunOutcome.FAILED)
        self.assertIsNone(self.ending(failed, LoopLimits(9, failures=2), first=3))


class BackendTests(SynchronousTestCase):
    """How a command gets its prompt."""

    def test_on_standard_input(self) -> None:
        prepared = prepare(("cat", "-n"), IterationMode.HEADLESS, "--help é")
        self.assertEqual((prepared.argv, prepared.stdin), (("cat", "-n"), "--help é".encode()))

    def test_as_an_argument(self) -> None:
        for mode in (IterationMode.INTERACTIVE, IterationMode.OBSERVE):
            prepared = prepare(("agent",), mode, "do it")
            self.assertEqual((prepared.argv, prepared.stdin), (("agent", "do it"), b""))

    def test_where_the_command_says(self) -> None:
        for mode in IterationMode:
            prepared = prepare(("agent", f"--task={PROMPT}", PROMPT), mode, "{prompt}")
            self.assertEqual((prepared.argv, prepared.stdin), (("agent", "--task={prompt}", "{prompt}"), b""))

    def test_what_cannot_be_an_argument(self) -> None:
        for prompt in ("x" * (ARGUMENT_LIMIT + 1), "a\0b"):
            with self.assertRaises(UsageError):
                prepare(("agent",), IterationMode.INTERACTIVE, prompt)
            prepare(("agent",), IterationMode.HEADLESS, prompt)

    def test_known_ones(self) -> None:
        for name in BACKENDS:
            for mode in IterationMode:
                has = any(PROMPT in word for word in known_command(name, mode))
                self.assertEqual(has, mode is not IterationMode.HEADLESS)
        with self.assertRaises(UsageError):
            known_command("kiro", IterationMode.HEADLESS)


class PromptTests(SynchronousTestCase):
    """What an iteration is told."""

    def test_its_text_or_its_file(self) -> None:
        top = scratch(self)
        path = top / "PROMPT.md"
        self.assertEqual(read_prompt("do it", path, top), "do it")
        with self.assertRaises(UsageError):
            read_prompt(" ", path, top)
        path.write_bytes(b"\n")
        with self.assertRaises(UsageError):
            read_prompt("", path, top)
        path.write_bytes(b"do \xff")
        self.assertEqual(read_prompt("", path, top), "do �")
        self.assertEqual(read_prompt("", path, scratch(self)), "do �")

    def test_what_an_agent_makes_of_the_file_leads_nowhere(self) -> None:
        top, outside = scratch(self), scratch(self)
        (outside / "key").write_text("secret")
        (top / "link").symlink_to(outside / "key")
        (top / "directory").symlink_to(outside)
        os.mkfifo(top / "fifo")
        os.mkfifo(outside / "fifo")
        for name in ("link", "directory/key", "fifo", outside / "fifo", "directory", "."):
            with self.assertRaisesRegex(UsageError, "^no prompt: "):
                read_prompt("", top / name, top)
        link = scratch(self) / "workspace"
        link.symlink_to(top)
        with self.assertRaises(UsageError):
            read_prompt("", link / "link", link)
        (top / "PROMPT.md").write_text("do it")
        self.assertEqual(read_prompt("", link / "PROMPT.md", link), "do it")

    def test_events_cannot_make_it_too_long(self) -> None:
        events = [LoopEvent(str(number), "x" * (TOLD_LIMIT // 3)) for number in range(5)]
        told = with_events("do it", events)
        self.assertLess(len(told), TOLD_LIMIT + 200)
        self.assertEqual(told.splitlines()[-1], "(and 3 more, too long to repeat here)")

    def test_events(self) -> None:
        self.assertEqual(with_events("do it\n", ()), "do it\n")
        told = with_events("do it\n", (LoopEvent("build.done", "all"), LoopEvent("x", "")))
        self.assertEqual(told, "do it\n\nEvents of the previous iteration:\n\n- build.done: all\n- x: \n")


class ConfigTests(SynchronousTestCase):
    """Settings from several places."""

    TEXT = (
        "event_loop:\n  prompt_file: TASK.md\n  completion_promise: DONE\n"
        "cli:\n  backend: codex\n  pty_mode: true\n  pty_interactive: false\n  idle_timeout_secs: 42\n"
    )

    def test_the_keys_of_the_file(self) -> None:
        layer, warnings = read_file("ralph.yml", self.TEXT)
        settings = configured(layer).settings
        self.assertEqual(warnings, ())
        self.assertEqual((settings.event_loop.prompt_file, settings.event_loop.completion_promise), ("TASK.md", "DONE"))
        cli = settings.cli
        self.assertEqual((cli.backend, cli.pty_mode, cli.pty_interactive), ("codex", True, False))
        self.assertEqual(cli.idle_timeout_secs, 42)

    def test_defaults(self) -> None:
        found = configured()
        self.assertEqual(found.settings, LoopSettings())
        self.assertEqual(set(found.origins.values()), {"default"})
        cli, loop = found.settings.cli, found.settings.event_loop
        self.assertEqual((cli.backend, cli.pty_mode, cli.pty_interactive), ("claude", False, True))
        self.assertEqual((cli.idle_timeout_secs, loop.prompt_file), (30, "PROMPT.md"))
        self.assertEqual(loop.completion_promise, "LOOP_COMPLETE")

    def test_a_later_layer_wins_and_each_says_where_it_is_from(self) -> None:
        layer, _ = read_file("ralph.yml", self.TEXT)
        found = configured(layer, SettingsLayer("--idle-timeout", {"cli.idle_timeout_secs": 5.0}))
        self.assertEqual(found.settings.cli.idle_timeout_secs, 5)
        origins = [found.origins[f"cli.{name}"] for name in ("idle_timeout_secs", "backend")]
        self.assertEqual(origins, ["--idle-timeout", "ralph.yml"])
        self.assertEqual(found.origins["event_loop.max_iterations"], "default")

    def test_they_survive_being_kept(self) -> None:
        layer, _ = read_file("ralph.yml", self.TEXT)
        settings = configured(layer, SettingsLayer("words", {"loop.command": ["a", "b"]})).settings
        self.assertEqual(configured(SettingsLayer("kept", values_of(settings))).settings, settings)

    def test_keys_that_mean_nothing_here_are_named(self) -> None:
        text = "hats:\n  builder: {}\nevent_loop:\n  starting_event: x\n  max_iterations: 5\ncli:\n  prompt_mode: arg\n"
        layer, warnings = read_file("ralph.yml", text)
        self.assertEqual(dict(layer.values), {"event_loop.max_iterations": 5})
        self.assertEqual([warning.split()[:2] for warning in warnings], [
            ["ralph.yml:1:", "hats"], ["ralph.yml:4:", "event_loop.starting_event"],
            ["ralph.yml:7:", "cli.prompt_mode"],
        ])  # fmt: skip

    def test_what_is_wrong_is_said_with_its_line(self) -> None:
        for text, message in (
            ("cli:\n  pty_mod: true", "ralph.yml:2: cli.pty_mod: there is no such setting: did you mean cli.pty_mode?"),
            ("event_lop: {}", "ralph.yml:1: event_lop: there is no such setting: did you mean event_loop?"),
            ("cli:\n  pty_mode: 1", "ralph.yml:2: cli.pty_mode: must be true or false, not a whole number"),
            ("cli:\n  idle_timeout_secs: -1", "ralph.yml:2: cli.idle_timeout_secs: must be at least 0"),
            ("event_loop:\n  completion_promise: ''", "ralph.yml:2: event_loop.completion_promise: must not be empty"),
            ("event_loop:\n  max_iterations: 0", "ralph.yml:2: event_loop.max_iterations: must be at least 1"),
            ("loop:\n  command: [rm]", "ralph.yml:2: loop.command: can only be given on the command line"),
            ("loop:\n  agent: x", "ralph.yml:2: loop.agent: can only be given on the command line"),
            ('event_loop:\n  prompt_file: "a\\0"', "ralph.yml:2: event_loop.prompt_file: has a zero character"),
            ("event_loop:\n  prompt_file: /x", "ralph.yml:2: event_loop.prompt_file: must be a file in the workspace"),
            ("event_loop:\n  prompt_file: a/../../x", "ralph.yml:2: event_loop.prompt_file: must be a file in the"),
            ("cli: [1]", "ralph.yml:1: cli: must contain settings"),
            ("- 1", "ralph.yml: must contain sections"),
            ("a: [", "ralph.yml:1: not YAML:"),
            ("a: !!python/object/apply:os.system [x]", "ralph.yml:1: not YAML:"),
        ):
            with self.assertRaises(ConfigurationError) as caught:
                read_file("ralph.yml", text)
            self.assertTrue(str(caught.exception).startswith(message), str(caught.exception))

    @given(st.text(max_size=60))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        with contextlib.suppress(ConfigurationError):
            read_file("ralph.yml", text)


class StateTests(SynchronousTestCase):
    """What is on disk."""

    def setUp(self) -> None:
        directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, directory)
        self.paths = SessionPaths(directory)

    def test_an_iteration_from_its_start_to_its_end(self) -> None:
        journal = Journal(self.paths)
        journal.open()
        begun = Iteration(number=1, outcome=RunOutcome.RUNNING, started_at=WHEN)
        journal.begin(begun, "do it")
        self.assertEqual(read_state(self.paths.loop).iterations, (begun,))
        self.assertEqual((journal.prompt_file.read_text(), journal.events_file.read_text()), ("do it", ""))
        ended = Iteration(number=1, outcome=RunOutcome.DONE, started_at=WHEN, seconds=2.5)
        journal.end(ended, [LoopEvent("a", "b")], "all")
        self.assertEqual(Journal(self.paths).state, LoopState(iterations=(ended,), events=(LoopEvent("a", "b"),)))
        self.assertEqual((self.paths.iterations / "0001.txt").read_text(), "all\n")
        journal.begin(Iteration(number=2, outcome=RunOutcome.RUNNING, started_at=WHEN), "go on")
        self.assertEqual(journal.events_file.read_text(), '{"topic":"a","payload":"b"}\n')

    def test_a_file_that_is_damaged_or_of_another_version(self) -> None:
        for text in ("{", '{"version": 2}', "[]"):
            self.paths.loop.write_text(text)
            with self.assertRaises(ConfigurationError):
                Journal(self.paths)


class ReportTests(SynchronousTestCase):
    """What a person sees in the end."""

    def test_a_row_for_each_iteration_of_the_last(self) -> None:
        table = rows(state(*[RunOutcome.DONE] * (SHOWN + 5)))
        self.assertEqual((len(table), table[-1][:2]), (SHOWN, (str(SHOWN + 5), "done")))

    def test_one_that_a_crash_cut_off(self) -> None:
        (row,) = rows(state(RunOutcome.RUNNING))
        self.assertEqual((row[1], row[3]), ("cut off", "-"))

    def test_a_sentence(self) -> None:
        self.assertEqual(sentence(state(RunOutcome.DONE), "why"), "1 iteration in 1.0 s: why.")
        two = state(RunOutcome.DONE, RunOutcome.DONE, cost=0.5)
        self.assertEqual(sentence(two, "why"), "2 iterations in 2.0 s, $1.00: why.")
