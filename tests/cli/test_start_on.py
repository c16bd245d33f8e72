"""Tests for what ``start --on`` accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.start import check_host, choose_there


class HostTests(SynchronousTestCase):
    def test_absolute_paths_are_those_of_the_host(self) -> None:
        check_host("build-3", [None, Path("/srv/app")], ["scripted:/srv/script.toml", "anthropic:m"], resuming=False)

    def test_what_has_no_meaning_there_is_refused(self) -> None:
        cases: tuple[tuple[str, list[Any], list[str], bool, str], ...] = (
            ("Build 3", [], [], False, "takes the name of a machine"),
            ("../daemon", [], [], False, "takes the name of a machine"),
            ("build-3", [Path("app")], [], False, "app: with --on, a path is one on build-3"),
            ("build-3", [], ["scripted:script.toml"], False, "script.toml: with --on"),
            ("build-3", [], [], True, "starts a new session"),
        )
        for host, paths, backends, resuming, why in cases:
            with self.assertRaises(click.UsageError) as caught:
                check_host(host, paths, backends, resuming=resuming)
            self.assertIn(why, caught.exception.message)

    def test_the_host_chooses_the_agent_unless_one_is_asked_for(self) -> None:
        self.assertEqual(choose_there("build-3", None, pty=False), ("", "the default one of build-3"))
        self.assertEqual(choose_there("build-3", "special", pty=True)[0], "special")
        self.assertEqual(choose_there("build-3", None, pty=True)[0], "claude-code")
