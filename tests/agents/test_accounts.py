"""What each agent gets with each account that can pay for its model."""

from __future__ import annotations

import json
import tomllib

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import provider_and_model
from ironcurtain.agents.claude_code import ClaudeCode
from ironcurtain.agents.codex import Codex
from ironcurtain.agents.gemini import Gemini
from ironcurtain.agents.goose import Goose
from ironcurtain.agents.opencode import OpenCode
from ironcurtain.errors import UsageError
from tests.agents.samples import content, facts

ACCOUNT = "11111111-2222-4333-8444-555555555555"


class ClaudeTests(SynchronousTestCase):
    def test_variables_of_each_account(self) -> None:
        places = {
            "bedrock": {"region": "eu-central-1"},
            "vertex": {"region": "europe-west1", "project": "mine"},
            "foundry": {"resource": "ours"},
        }
        for provider, variables in (
            ("anthropic", {"ANTHROPIC_API_KEY": "fake"}),
            ("claude", {"CLAUDE_CODE_OAUTH_TOKEN": "fake"}),
            (
                "bedrock",
                {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_BEARER_TOKEN_BEDROCK": "fake", "AWS_REGION": "eu-central-1"},
            ),
            (
                "vertex",
                {
                    "CLAUDE_CODE_USE_VERTEX": "1",
                    "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
                    "CLOUD_ML_REGION": "europe-west1",
                    "ANTHROPIC_VERTEX_PROJECT_ID": "mine",
                    "ANTHROPIC_CUSTOM_HEADERS": "Authorization: Bearer fake",
                },
            ),
            (
                "foundry",
                {
                    "CLAUDE_CODE_USE_FOUNDRY": "1",
                    "ANTHROPIC_FOUNDRY_API_KEY": "fake",
                    "ANTHROPIC_FOUNDRY_RESOURCE": "ours",
                },
            ),
        ):
            given = facts({provider: "fake"}, places=places)
            found = ClaudeCode().environment(given)
            paying = {name: value for name, value in found.items() if name in variables or value == "fake"}
            self.assertEqual(paying, variables)
            approved = json.loads(content(ClaudeCode().files(given), "home", ".claude.json"))["customApiKeyResponses"]
            self.assertEqual(approved["approved"], ["fake"] if provider == "anthropic" else [])


class CodexTests(SynchronousTestCase):
    def configuration(self, keys: dict[str, str], accounts: dict[str, str]) -> dict[str, object]:
        """:returns: the provider in Codex's configuration."""
        text = content(Codex().files(facts(keys, accounts=accounts)), "home", ".codex/config.toml")
        found: dict[str, object] = tomllib.loads(text)["model_providers"]["openai-http"]
        return found

    def test_key_and_plan_have_addresses_of_their_own(self) -> None:
        found = self.configuration({"openai": "key"}, {})
        self.assertEqual((found["base_url"], "http_headers" in found), ("https://api.openai.com/v1", False))
        found = self.configuration({"chatgpt": "a.b.c"}, {"chatgpt": ACCOUNT})
        self.assertEqual(found["base_url"], "https://chatgpt.com/backend-api/codex")
        self.assertEqual(found["http_headers"], {"chatgpt-account-id": ACCOUNT})
        self.assertEqual(Codex().environment(facts({"chatgpt": "a.b.c"})), {"OPENAI_API_KEY": "a.b.c"})


class GeminiTests(SynchronousTestCase):
    def test_login_needs_no_file(self) -> None:
        given = facts({"google-login": "ya29.fake"})
        found = Gemini().environment(given)
        self.assertEqual(found["GOOGLE_CLOUD_ACCESS_TOKEN"], "ya29.fake")
        self.assertEqual(found["GOOGLE_GENAI_USE_GCA"], "true")
        self.assertNotIn("GEMINI_API_KEY", found)
        settings = json.loads(content(Gemini().files(given), "home", ".gemini/settings.json"))
        self.assertEqual(settings["security"]["auth"]["selectedType"], "oauth-personal")


class OpenCodeTests(SynchronousTestCase):
    def test_logins_are_in_its_own_file(self) -> None:
        given = facts({"chatgpt": "a.b.c", "copilot": "gho_fake"}, model="gpt-5", accounts={"chatgpt": ACCOUNT})
        stored = json.loads(content(OpenCode().files(given), "home", ".local/share/opencode/auth.json"))
        self.assertEqual(set(stored), {"openai", "github-copilot"})
        self.assertEqual((stored["openai"]["access"], stored["openai"]["accountId"]), ("a.b.c", ACCOUNT))
        self.assertEqual((stored["github-copilot"]["refresh"], stored["github-copilot"]["expires"]), ("gho_fake", 0))
        configured = json.loads(content(OpenCode().files(given), "orientation", "opencode.json"))
        self.assertEqual(configured["model"], "openai/gpt-5")

    def test_models_of_gateways_have_to_be_named(self) -> None:
        for provider in ("openrouter", "copilot"):
            error = self.assertRaises(UsageError, OpenCode().environment, facts({provider: "fake"}))
            self.assertIn(f"--model {provider}/MODEL", str(error))
        given = facts({"copilot": "gho_fake"}, model="copilot/gpt-5")
        configured = json.loads(content(OpenCode().files(given), "orientation", "opencode.json"))
        self.assertEqual(configured["model"], "github-copilot/gpt-5")
        routed = facts({"openrouter": "sk-or-v1-fake"}, model="openrouter/vendor/model")
        configured = json.loads(content(OpenCode().files(routed), "orientation", "opencode.json"))
        models = configured["provider"]["openrouter"]["models"]
        self.assertEqual(models, {"vendor/model": {}}, "a model that it does not know would be another provider's")
        environment = OpenCode().environment(routed)
        self.assertEqual(environment["OPENROUTER_API_KEY"], "sk-or-v1-fake")


class GooseTests(SynchronousTestCase):
    def test_openrouter(self) -> None:
        found = Goose().environment(facts({"openrouter": "sk-or-v1-fake"}, model="openrouter/vendor/model"))
        self.assertEqual((found["GOOSE_PROVIDER"], found["GOOSE_MODEL"]), ("openrouter", "vendor/model"))
        self.assertEqual(found["OPENROUTER_API_KEY"], "sk-or-v1-fake")


class ModelTests(SynchronousTestCase):
    def test_another_account_pays_for_the_same_models(self) -> None:
        providers = OpenCode().providers
        for model in ("gpt-5", "openai/gpt-5", "chatgpt/gpt-5"):
            found = provider_and_model(facts({"chatgpt": "a.b.c"}, model=model), providers, "OpenCode")
            self.assertEqual(found, ("chatgpt", "gpt-5"))
        found = provider_and_model(
            facts({"chatgpt": "a.b.c", "openai": "key"}, model="openai/x"), providers, "OpenCode"
        )
        self.assertEqual(found, ("openai", "x"))
