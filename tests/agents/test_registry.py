"""Which agents there are."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.codex import Codex
from ironcurtain.agents.registry import BUILT_IN, GROUP, AgentRegistry, installed
from ironcurtain.container.image_choices import FOLDERS
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.agent_names import OWN_AGENTS
from ironcurtain.providers.registry import KNOWN_PROVIDERS

MODULE = "ironcurtain_agent_for_tests"


class Other(Codex):
    """Another agent."""

    id = "other"
    display_name = "Other"


def entry(name: str, attribute: str = "AGENT") -> EntryPoint:
    """:returns: an entry point as a package declares it."""
    return EntryPoint(name, f"{MODULE}:{attribute}", GROUP)


class BuiltInTests(SynchronousTestCase):
    """Those that come with IronCurtain."""

    def test_all_five(self) -> None:
        self.assertEqual(AgentRegistry().names, list(OWN_AGENTS))
        self.assertEqual(len(OWN_AGENTS), 5)
        self.assertLessEqual(set(AgentRegistry().names), set(installed().names))

    def test_each_has_an_image_and_providers_that_there_are(self) -> None:
        for adapter in BUILT_IN:
            self.assertTrue((FOLDERS / adapter.image / "Dockerfile").is_file(), adapter.image)
            self.assertLessEqual(set(adapter.providers), set(KNOWN_PROVIDERS), adapter.id)

    def test_they_are_listed(self) -> None:
        [claude, *_] = AgentRegistry().listing()
        self.assertEqual((claude.id, claude.display_name, claude.image), ("claude-code", "Claude Code", "claude-code"))
        self.assertEqual(
            (claude.providers, claude.supports_pty, claude.problem),
            (("anthropic", "claude", "bedrock", "vertex", "foundry"), True, ""),
        )

    def test_an_unknown_one(self) -> None:
        error = self.assertRaises(UsageError, AgentRegistry([entry("other")]).find, "cluade-code")
        self.assertEqual(error.exit_status, 64)
        self.assertIn("claude-code, codex, gemini, goose (untested), opencode, other", str(error))


class EntryPointTests(SynchronousTestCase):
    """Those that other packages bring."""

    def bring(self, **attributes: Any) -> None:
        """Put a module in place that the entry points name."""
        module = ModuleType(MODULE)
        vars(module).update(attributes)
        sys.modules[MODULE] = module
        self.addCleanup(sys.modules.pop, MODULE)

    def test_one(self) -> None:
        self.bring(AGENT=Other())
        registry = AgentRegistry([entry("other")])
        self.assertEqual(registry.find("other").display_name, "Other")
        self.assertIn("Other", [listed.display_name for listed in registry.listing()])

    def test_a_name_that_is_taken_is_refused(self) -> None:
        """Also before anything of that package is imported."""
        error = self.assertRaises(ConfigurationError, AgentRegistry, [entry("claude-code")])
        self.assertIn("claude-code", str(error))
        self.assertIn("IronCurtain itself", str(error))
        self.assertRaises(ConfigurationError, AgentRegistry, [entry("other"), entry("other", "SECOND")])

    def test_a_broken_one_does_not_stop_the_others(self) -> None:
        registry = AgentRegistry([entry("other")])
        self.assertEqual(registry.find("codex").id, "codex")
        error = self.assertRaises(ConfigurationError, registry.find, "other")
        self.assertIn("cannot be imported: ModuleNotFoundError", str(error))
        [problem] = [listed.problem for listed in registry.listing() if listed.id == "other"]
        self.assertEqual(problem, str(error))

    def test_what_is_no_adapter(self) -> None:
        class Silent(Other):
            dialogue = None  # type: ignore[assignment]
            providers = "openai"  # type: ignore[assignment]

        self.bring(AGENT=Silent(), KIND=Other, AGENTS=Other())
        for name, attribute, words in (
            ("other", "AGENT", "wrong or missing: dialogue, providers"),
            ("other", "KIND", "is a class"),
            ("another", "AGENTS", "has the id 'other'"),
            ("other", "MISSING", "cannot be imported: AttributeError"),
        ):
            error = self.assertRaises(ConfigurationError, AgentRegistry([entry(name, attribute)]).find, name)
            self.assertIn(words, str(error))

    def test_a_name_that_cannot_be_typed(self) -> None:
        class Strange(Other):
            id = "Other Agent"

        self.bring(AGENT=Strange())
        self.assertRaises(ConfigurationError, AgentRegistry([entry("Other Agent")]).find, "Other Agent")
