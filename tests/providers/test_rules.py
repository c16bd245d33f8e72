from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import Provider
from ironcurtain.providers.rules import ProviderRule, check_providers, provider_rules

OWN = {
    "host": "llm.example.com",
    "endpoints": ["POST /v1/chat/completions"],
    "key": {"header": "X-LLM-Key", "prefix": "llm-", "env": "LLM_KEY"},
}


def rules(*names: str, **tables: dict[str, Any]) -> tuple[ProviderRule, ...]:
    return provider_rules(msgspec.convert(tables, dict[str, Provider]), names)


def one(name: str, **table: Any) -> ProviderRule:
    (rule,) = rules(name, **{name: table})
    return rule


class BuiltInTests(SynchronousTestCase):
    def test_three_need_no_table(self) -> None:
        anthropic, openai, google = rules("anthropic", "openai", "google")
        self.assertEqual(
            (anthropic.host, anthropic.port, anthropic.key_header),
            ("api.anthropic.com", 443, "x-api-key"),
        )
        self.assertEqual((openai.host, openai.key_header), ("api.openai.com", "authorization"))
        self.assertEqual((google.host, google.key_header), ("generativelanguage.googleapis.com", "x-goog-api-key"))
        self.assertEqual(
            (anthropic.upstream_host, anthropic.upstream_port, anthropic.upstream_path), (anthropic.host, 443, "")
        )
        self.assertEqual(
            [rule.provider.name for rule in (anthropic, openai, google)], ["anthropic", "openai", "google"]
        )

    def test_they_allow_requests_to_models_and_nothing_else(self) -> None:
        allowed = {str(endpoint) for rule in rules("anthropic", "openai", "google") for endpoint in rule.endpoints}
        self.assertEqual(
            allowed,
            {
                "POST /v1/messages",
                "POST /v1/messages/count_tokens",
                "POST /v1/responses",
                "POST /v1/responses/compact",
                "POST /v1/chat/completions",
                "POST /v1beta/models/*:generateContent",
                "POST /v1beta/models/*:streamGenerateContent",
                "POST /v1beta/models/*:countTokens",
            },
        )

    def test_a_table_changes_what_it_names(self) -> None:
        rule = one(
            "anthropic", endpoints=["POST /v1/messages"], key={"prefix": "sk-ant-oat01-", "header": "Authorization"}
        )
        self.assertEqual([str(endpoint) for endpoint in rule.endpoints], ["POST /v1/messages"])
        self.assertEqual(rule.key_header, "authorization")
        self.assertEqual((rule.host, rule.provider.name), ("api.anthropic.com", "anthropic"))

    def test_a_gateway_takes_the_place_of_the_providers_address(self) -> None:
        rule = one("openai", base_url="https://Gateway.example:8443/llm/openai/", ca_file="/etc/ca.pem")
        self.assertEqual(rule.host, "api.openai.com")
        self.assertEqual(
            (rule.upstream_host, rule.upstream_port, rule.upstream_path), ("gateway.example", 8443, "/llm/openai")
        )
        self.assertEqual(rule.ca_file, "/etc/ca.pem")
        rule = one("openai", base_url="https://[::1]")
        self.assertEqual((rule.upstream_host, rule.upstream_port, rule.upstream_path), ("::1", 443, ""))

    def test_only_what_base_url_names_is_a_gateway(self) -> None:
        for table, gateway in (
            ({}, False),
            ({"host": "llm.example.com", "port": 8443}, False),
            ({"base_url": "https://gateway.example"}, True),
            ({"base_url": "https://api.openai.com"}, True),
        ):
            rule = one("openai", **table)
            self.assertEqual((rule.gateway, rule.tls), (gateway, True), table)

    def test_on_this_machine_a_gateway_needs_no_tls(self) -> None:
        rule = one("openai", base_url="http://127.0.0.1:11434/llm")
        self.assertEqual((rule.gateway, rule.tls), (True, False))
        self.assertEqual((rule.upstream_host, rule.upstream_port, rule.upstream_path), ("127.0.0.1", 11434, "/llm"))
        rule = one("openai", base_url="http://[::1]")
        self.assertEqual((rule.upstream_host, rule.upstream_port, rule.tls), ("::1", 80, False))

    def test_the_table_of_a_server_that_no_agent_asks_needs_no_host(self) -> None:
        for table, problem in (
            ({"base_url": "http://127.0.0.1:11434/v1"}, ""),
            ({"key": {"env": "MINE"}}, ""),
            ({"key": {"header": "host"}}, "config.toml: providers.openai-chat.key.header"),
            ({"base_url": "http://203.0.113.1/v1"}, "config.toml: providers.openai-chat.base_url"),
            ({"base_url": "https://x.example", "ca_file": "ca.pem"}, "config.toml: providers.openai-chat.ca_file"),
        ):
            tables = {"openai-chat": msgspec.convert(table, Provider)}
            if problem:
                error = self.assertRaises(ConfigurationError, check_providers, tables, "config.toml", "")
                self.assertIn(problem, str(error))
            else:
                check_providers(tables, "config.toml", "")

    def test_tables_of_providers_that_are_not_wanted_are_not_looked_at(self) -> None:
        self.assertEqual([rule.name for rule in rules("openai", "openai", broken={"host": "?"})], ["openai"])


class OwnTests(SynchronousTestCase):
    def test_one_that_says_everything(self) -> None:
        rule = one("mine", **OWN)
        self.assertEqual((rule.host, rule.key_header, rule.key_prefix), ("llm.example.com", "x-llm-key", "llm-"))
        self.assertEqual(rule.provider.name, "openai")

    def test_the_paths_tell_whose_shapes_it_uses(self) -> None:
        for endpoints, provider in (
            (["POST /anthropic/v1/messages"], "anthropic"),
            (["POST /v1/responses", "POST /v1/chat/completions", "GET /v1/models"], "openai"),
            (["POST /v1/models/*:generateContent"], "google"),
            (["POST /v1/messages", "POST /v1/responses"], "other"),
            (["POST /v2/chat"], "other"),
        ):
            self.assertEqual(one("mine", **{**OWN, "endpoints": endpoints}).provider.name, provider, endpoints)

    def test_what_is_missing_is_named(self) -> None:
        for missing, table in (
            ("host", {**OWN, "host": ""}),
            ("endpoints", {**OWN, "endpoints": []}),
            ("key.header", {**OWN, "key": {"prefix": "x-"}}),
            ("key.prefix", {**OWN, "key": {"header": "x-key"}}),
        ):
            error = self.assertRaises(ConfigurationError, one, "mine", **table)
            self.assertIn(f"config.toml: providers.mine.{missing}: is missing", str(error))

    def test_an_unknown_name_says_which_are_built_in(self) -> None:
        error = self.assertRaises(ConfigurationError, rules, "antropic")
        self.assertIn("anthropic, openai, google", str(error))

    def test_two_must_not_share_a_host(self) -> None:
        error = self.assertRaises(
            ConfigurationError, rules, "anthropic", "mine", mine={**OWN, "host": "API.anthropic.com"}
        )
        self.assertIn("also the host of provider anthropic", str(error))

    def test_values_that_do_not_fit_are_refused(self) -> None:
        for field, table in (
            ("host", {**OWN, "host": "llm.example.com:443"}),
            ("host", {**OWN, "host": "https://llm.example.com"}),
            ("host", {**OWN, "host": "127.0.0.1"}),
            ("host", {**OWN, "host": "0x7f.1"}),
            ("host", {**OWN, "host": "2130706433"}),
            ("host", {**OWN, "host": "[::1]"}),
            ("host", {**OWN, "host": "m\u00fcnchen.example"}),
            ("host", {**OWN, "host": "a..example"}),
            ("host", {**OWN, "host": "-a.example"}),
            ("host", {**OWN, "host": "evil.test\0.example.com"}),
            ("host", {**OWN, "host": "example.com\n"}),
            ("endpoints", {**OWN, "endpoints": ["POST /v1/../x"]}),
            ("key.header", {**OWN, "key": {"header": "host", "prefix": "x"}}),
            ("key.header", {**OWN, "key": {"header": "Content-Length", "prefix": "x"}}),
            ("key.header", {**OWN, "key": {"header": "range", "prefix": "x"}}),
            ("key.header", {**OWN, "key": {"header": "x key", "prefix": "x"}}),
            ("key.prefix", {**OWN, "key": {"header": "x-key", "prefix": "a b"}}),
            ("base_url", {**OWN, "base_url": "http://gateway.example"}),
            ("base_url", {**OWN, "base_url": "http://localhost.example:11434"}),
            ("base_url", {**OWN, "base_url": "http://203.0.113.1:11434"}),
            ("base_url", {**OWN, "base_url": "http://0.0.0.0:11434"}),
            ("base_url", {**OWN, "base_url": "http://127.0.0.1.example.com"}),
            ("base_url", {**OWN, "base_url": "http://127.1"}),
            ("base_url", {**OWN, "base_url": "http://[::ffff:127.0.0.1]"}),
            ("base_url", {**OWN, "base_url": "https://user:pass@gateway.example"}),
            ("base_url", {**OWN, "base_url": "https://gateway.example?x=1"}),
            ("base_url", {**OWN, "base_url": "https://gateway.example:99999"}),
            ("base_url", {**OWN, "base_url": "https://gateway.example/a/../b"}),
            ("base_url", {**OWN, "base_url": "https://"}),
            ("base_url", {**OWN, "base_url": "gateway.example"}),
        ):
            error = self.assertRaises(ConfigurationError, one, "mine", **table)
            self.assertEqual(error.field, f"providers.mine.{field}", table)
