"""Providers that a login or a cloud pays for."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import Provider
from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.bodies import JudgedBody, judge_body
from ironcurtain.providers.clouds import BEDROCK, VERTEX
from ironcurtain.providers.endpoints import find
from ironcurtain.providers.logins import GOOGLE_LOGIN
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.registry import KNOWN_PROVIDERS, body_rules, family
from ironcurtain.providers.rules import ProviderRule, provider_rules

MESSAGES = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 10}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}


def rule(name: str, **table: Any) -> ProviderRule:
    tables = msgspec.convert({name: table}, dict[str, Provider]) if table else {}
    (found,) = provider_rules(tables, [name])
    return found


class PlaceTests(SynchronousTestCase):
    def test_host_and_endpoints_contain_the_place_in_the_cloud(self) -> None:
        self.assertEqual(rule("bedrock", region="eu-central-1").host, "bedrock-runtime.eu-central-1.amazonaws.com")
        self.assertEqual(rule("foundry", resource="ours").host, "ours.services.ai.azure.com")
        found = rule("vertex", region="europe-west1", project="mine")
        self.assertEqual(found.host, "europe-west1-aiplatform.googleapis.com")
        path = "/v1/projects/{}/locations/europe-west1/publishers/anthropic/models/claude-x@1:streamRawPredict"
        self.assertIsNotNone(find(found.endpoints, "POST", path.format("mine")))
        self.assertIsNone(find(found.endpoints, "POST", path.format("other")))
        self.assertEqual(found.places, {"region": "europe-west1", "project": "mine"})

    def test_missing_and_useless_places_are_wrong(self) -> None:
        for name, table, field in (
            ("bedrock", {}, "providers.bedrock.region"),
            ("vertex", {"region": "us-east5"}, "providers.vertex.project"),
            ("anthropic", {"region": "us-east-1"}, "providers.anthropic.region"),
        ):
            error = self.assertRaises(ConfigurationError, rule, name, **table)
            self.assertIn(field, str(error))

    def test_place_cannot_name_another_host(self) -> None:
        for region in ("evil.test/", "us-east-1.evil.test#", "a@b", "US", "-a", "a\n", "{host}"):
            self.assertRaises(msgspec.ValidationError, rule, "bedrock", region=region)


class HostTests(SynchronousTestCase):
    def test_key_and_subscription_of_one_host_exclude_each_other(self) -> None:
        self.assertRaises(ConfigurationError, provider_rules, {}, ["anthropic", "claude"])

    def test_families(self) -> None:
        for name, of in (
            *(("claude", "anthropic"), ("bedrock", "anthropic"), ("chatgpt", "openai"), ("google-login", "google")),
            *(("openrouter", "openrouter"), ("copilot", "copilot"), ("anthropic", "anthropic"), ("mine", "mine")),
        ):
            self.assertEqual(family(name), of)

    def test_what_is_absent_is_not_allowed_as_well(self) -> None:
        for name in ("anthropic", "claude", "chatgpt", "google-login", "copilot"):
            found = rule(name)
            for endpoint in found.absent:
                self.assertIsNone(find(found.endpoints, endpoint.method, endpoint.path.replace("*", "x")))

    def test_side_requests_of_claude_code_are_absent_with_a_key_and_a_login(self) -> None:
        for name in ("anthropic", "claude"):
            self.assertIsNotNone(find(rule(name).absent, "GET", "/api/claude_code/settings"))

    def test_names_of_models_select_providers_of_keys_only(self) -> None:
        for known in KNOWN_PROVIDERS.values():
            self.assertEqual(known.models.match("claude-opus gpt-5 gemini") is not None, known.name == "anthropic")


class PrivateTests(SynchronousTestCase):
    def test_models_in_a_private_network_need_no_tls_if_their_address_is_given(self) -> None:
        for address in ("10.1.2.3", "172.16.0.1", "192.168.1.20:11434", "100.64.0.1", "[fd00::1]:8080", "127.0.0.1"):
            found = rule("openai", base_url=f"http://{address}/v1")
            self.assertEqual((found.tls, found.gateway), (False, True), address)
        for address in (
            *("203.0.113.1", "169.254.169.254", "[fe80::1]", "ollama.lan", "10.1.2.3.evil.test", "172.32.0.1"),
            *("10.1.2.3?x", "me@10.1.2.3", "0.0.0.0", "[::ffff:10.0.0.1]", "10.1"),
        ):
            self.assertRaises(ConfigurationError, rule, "openai", base_url=f"http://{address}/v1")


class BodyTests(SynchronousTestCase):
    def judged(self, provider: str, path: str, body: dict[str, Any]) -> JudgedBody | RequestRefusal:
        rules = body_rules(KNOWN_PROVIDERS[provider], path, "application/json")
        assert rules is not None
        return judge_body(rules, json.dumps(body).encode())

    def test_clouds_judge_messages(self) -> None:
        for provider, path in (
            ("bedrock", "/model/m/invoke-with-response-stream"),
            ("bedrock", "/model/m/invoke"),
            ("vertex", "/v1/projects/p/locations/r/publishers/anthropic/models/m:streamRawPredict"),
        ):
            body = {**MESSAGES, "anthropic_version": "x", "anthropic_beta": ["y"], "other": 1}
            found = self.judged(provider, path, body)
            assert isinstance(found, JudgedBody), found
            self.assertEqual(found.dropped, ("other",))
            tools = [{"type": "web_search_20250305", "name": "web_search"}]
            self.assertIsInstance(self.judged(provider, path, {**MESSAGES, "tools": tools}), RequestRefusal)

    def test_subscription_says_whose_a_tool_is(self) -> None:
        tool = {"name": "read", "input_schema": {"type": "object"}, "ownership_metadata": {"owner": "mcp"}}
        found = self.judged("claude", "/v1/messages", {**MESSAGES, "model": "m", "tools": [tool]})
        assert isinstance(found, JudgedBody), found
        self.assertEqual(found.dropped, ())

    def test_code_assist_judges_the_request_inside(self) -> None:
        body = {"model": "m", "project": "p", "user_prompt_id": "u", "request": {**CONTENTS, "session_id": "s"}}
        path = "/v1internal:streamGenerateContent"
        found = self.judged("google-login", path, {**body, "enabled_credit_types": ["GOOGLE_ONE_AI"]})
        assert isinstance(found, JudgedBody), found
        self.assertEqual(found.dropped, ("enabled_credit_types",))
        acting: list[dict[str, Any]] = [{"tools": [{"googleSearch": {}}]}, {"tools": [{"urlContext": {}}]}, {"new": 1}]
        for inside in acting:
            request = {**CONTENTS, **inside}
            self.assertIsInstance(self.judged("google-login", path, {**body, "request": request}), RequestRefusal)

    def test_bodies_of_all_calls_are_judged_for_every_provider(self) -> None:
        for known in KNOWN_PROVIDERS.values():
            for ending in known.calls:
                self.assertIsNotNone(body_rules(known, f"/x{ending}", "text/plain"), f"{known.name} {ending}")


class CountTests(SynchronousTestCase):
    def test_counts_of_code_assist_are_inside(self) -> None:
        counts = {"promptTokenCount": 10, "candidatesTokenCount": 5}
        answer = {"response": {"usageMetadata": counts, "modelVersion": "gemini-x"}, "traceId": "t"}
        found = GOOGLE_LOGIN.count(json.dumps(answer).encode(), TokenUsage())
        self.assertEqual((found.model, found.usage), ("gemini-x", TokenUsage(10, 5)))
        self.assertIsNone(GOOGLE_LOGIN.count(b'{"error": {}}', TokenUsage()).usage)

    def test_clouds_count_like_anthropic(self) -> None:
        answer = json.dumps({"model": "claude-x", "usage": {"input_tokens": 3, "output_tokens": 4}}).encode()
        for known in (BEDROCK, VERTEX):
            self.assertEqual(known.count(answer, TokenUsage()).usage, TokenUsage(3, 4))
