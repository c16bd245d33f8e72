"""Older files without sections, and limits that cannot be kept."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.loop.config import FILE_LIMIT, read_file


class FlatKeyTests(SynchronousTestCase):
    def test_keys_without_a_section_are_settings(self) -> None:
        for text, expected in (
            ("agent: codex", {"cli.backend": "codex"}),
            ("agent: auto", {}),
            ("backend: gemini", {"cli.backend": "gemini"}),
            ("prompt_file: TASK.md", {"event_loop.prompt_file": "TASK.md"}),
            ("prompt: Mend it.", {"event_loop.prompt": "Mend it."}),
            ("completion_promise: DONE", {"event_loop.completion_promise": "DONE"}),
            ("max_iterations: 5", {"event_loop.max_iterations": 5}),
            ("max_runtime: 600", {"event_loop.max_runtime_seconds": 600}),
            ("max_runtime_seconds: 600", {"event_loop.max_runtime_seconds": 600}),
            ("max_cost: 2.5", {"event_loop.max_cost_usd": 2.5}),
            ("max_cost_usd: 2.5", {"event_loop.max_cost_usd": 2.5}),
            ("max_consecutive_failures: 2", {"event_loop.max_consecutive_failures": 2}),
            ("idle_timeout_secs: 9", {"cli.idle_timeout_secs": 9}),
            ("git_checkpoint: true", {"loop.git_checkpoint": True}),
            ("max_iterations: 5\ncli:\n  pty_mode: true", {"event_loop.max_iterations": 5, "cli.pty_mode": True}),
        ):
            layer, warnings = read_file("ralph.yml", text)
            self.assertEqual((dict(layer.values), warnings), (expected, ()), text)

    def test_their_values_are_checked_with_their_own_line(self) -> None:
        for text, message in (
            ("agent: claude\nmax_iterations: 0", "ralph.yml:2: event_loop.max_iterations: must be at least 1"),
            ("max_cost: -1", "ralph.yml:1: event_loop.max_cost_usd: must be"),
            ("max_runtime: long", "ralph.yml:1: event_loop.max_runtime_seconds: must be"),
            ("\nprompt_file: ../x", "ralph.yml:2: event_loop.prompt_file: must be a file in the workspace"),
            ("completion_promise: <promise></promise>", "ralph.yml:1: event_loop.completion_promise: "),
            ("max_iteration: 5", "ralph.yml:1: max_iteration: there is no such setting: did you mean max_iterations?"),
        ):
            error = self.assertRaises(ConfigurationError, read_file, "ralph.yml", text)
            self.assertTrue(str(error).startswith(message), str(error))

    def test_key_without_a_section_cannot_choose_what_runs_outside(self) -> None:
        for text in ("command: [rm]", "loop_command: [rm]"):
            layer, warnings = read_file("ralph.yml", text)
            self.assertEqual((dict(layer.values), len(warnings)), ({}, 1))

    def test_one_setting_given_twice_is_refused(self) -> None:
        for text, line in (
            ("max_iterations: 5\nmax_iterations: 500", 2),
            ("event_loop:\n  max_iterations: 5\n  max_iterations: 500", 3),
            ("max_iterations: 5\nevent_loop:\n  max_iterations: 500", 3),
            ("max_runtime: 5\nmax_runtime_seconds: 500", 2),
            ("{max_cost: 1, max_cost: 9}", 1),
        ):
            error = self.assertRaises(ConfigurationError, read_file, "ralph.yml", text)
            self.assertIn("keep one", str(error))
            self.assertTrue(str(error).startswith(f"ralph.yml:{line}: "), str(error))


class AliasTests(SynchronousTestCase):
    def test_aliases_are_refused(self) -> None:
        for text, line in (
            ("a: &a [*a]", 1),
            ("a: &a\n  b: *a", 2),
            ("x: &x {max_iterations: 5}\nevent_loop:\n  <<: *x", 3),
            ("a: &a [1, 1]\nb: &b [*a, *a]\nc: [*b, *b]", 2),
        ):
            error = self.assertRaises(ConfigurationError, read_file, "ralph.yml", text)
            self.assertEqual(str(error), f"ralph.yml:{line}: has an alias: write its value out")

    def test_deep_nesting_is_refused(self) -> None:
        for text in ("[" * FILE_LIMIT, f"a: {'[' * 5_000}{']' * 5_000}", "- " * 9_000, "? " * 9_000):
            began = time.process_time()
            error = self.assertRaises(ConfigurationError, read_file, "ralph.yml", text)
            self.assertEqual(str(error), "ralph.yml:1: is nested too deeply")
            self.assertLess(time.process_time() - began, 1)
        read_file("ralph.yml", "\n".join(f"a{number}: [[[{{}}]]]" for number in range(100)))


class WarningTests(SynchronousTestCase):
    def test_keys_are_escaped(self) -> None:
        _, (warning,) = read_file("ralph.yml", '"a\\e]52;c;aGk=\\a": 1')
        self.assertEqual(warning, "ralph.yml:1: a\\x1b]52;c;aGk=\\x07 has no meaning here and is ignored")


class LimitTests(SynchronousTestCase):
    def test_limit_without_counterpart_is_refused(self) -> None:
        for text, where in (
            ("max_tokens: 1000", "1: max_tokens"),
            ("agent: claude\nmaxTokens: 1000", "2: maxTokens"),
            ("max-turns: 3", "1: max-turns"),
            ("iteration_timeout: 60", "1: iteration_timeout"),
            ("cost_limit: 2", "1: cost_limit"),
            ("token_budget: 1", "1: token_budget"),
            ("event_loop:\n  cancellation_promise: STOP", "2: event_loop.cancellation_promise"),
            ("event_loop:\n  max_total_tokens_used: 2", "2: event_loop.max_total_tokens_used"),
            ("cli:\n  timeout: 2", "2: cli.timeout"),
            ("hats:\n  builder:\n    max_activations: 3", "2: hats.builder.max_activations"),
            ("adapters:\n  claude: {timeout: 300}", "2: adapters.claude.timeout"),
            ("crew:\n- name: x\n  max_cost: 1", "1: crew.-.max_cost"),
        ):
            error = self.assertRaises(ConfigurationError, read_file, "ralph.yml", text)
            self.assertIn("this limit cannot be kept here: remove it", str(error))
            self.assertTrue(str(error).startswith(f"ralph.yml:{where}: "), str(error))

    def test_what_limits_nothing_produces_a_warning(self) -> None:
        for text in (
            "verbose: true",
            "max_tokens: null",
            "max_tokens: false",
            "memories:\n  budget: 2000",
            "retry_delay: 2",
            "hats:\n  builder: {description: max 3}",
            "maximal: 1",
        ):
            layer, warnings = read_file("ralph.yml", text)
            self.assertEqual((dict(layer.values), len(warnings)), ({}, 1), text)

    @given(
        st.recursive(
            st.integers() | st.text(max_size=3),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
        ),
        st.sampled_from(("max_steps", "hats", "event_loop", "x")),
    )
    def test_no_limit_at_any_depth_is_dropped(self, value: Any, name: str) -> None:
        text = yaml.safe_dump({name: {"a": [value, {"max_rounds": 1}]}})
        with contextlib.suppress(ConfigurationError):
            read_file("ralph.yml", text)
            self.fail(text)
