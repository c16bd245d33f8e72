from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.sections import Model, Provider
from ironcurtain.llm.registry import (
    Chosen,
    ModelSurroundings,
    backends_in_order,
    configured_backend,
    fallback_for,
    needs_key,
    provider_for,
)
from ironcurtain.secrets.redaction import Secret
from tests.http.direct import DIRECT
from tests.llm.files import written


class ProviderForTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.keys_asked: list[str] = []

    def key_for(self, name: str) -> Secret:
        self.keys_asked.append(name)
        return Secret("sk-ant-api03-0000000000", "nowhere")

    def choose(self, backend: str, model: str = "", **tables: Mapping[str, Any]) -> Chosen:
        return provider_for(backend, model, tables, self.surroundings())

    def surroundings(self) -> ModelSurroundings:
        clock = Clock()
        return ModelSurroundings(clock, clock, lambda: 0.5, self.key_for, 9.0, DIRECT)

    def test_the_backend_decides(self) -> None:
        chosen = self.choose("anthropic", "some-model")
        self.assertEqual((chosen.provider.name, chosen.model), ("anthropic", "some-model"))
        self.assertEqual(self.keys_asked, ["anthropic"])

    def test_without_a_backend_the_name_of_the_model_decides(self) -> None:
        for model, backend in (
            ("claude-opus-5", "anthropic"),
            ("gpt-6.1-sol", "openai"),
            ("o4-mini", "openai"),
            ("gemini-3.1-pro-preview", "google"),
            ("unheard-of", "subprocess:cat"),
            ("", "subprocess:cat"),
        ):
            settings = Model(backend="subprocess", command="cat")
            self.assertEqual(backends_in_order((), model, settings), ([backend], model))

    def test_the_order_of_backends(self) -> None:
        listed = Model(backends=("openai", "google:gemini-2.5-pro"), name="gpt-5")
        self.assertEqual(backends_in_order((), "", listed), (["openai", "google:gemini-2.5-pro"], "gpt-5"))
        self.assertEqual(backends_in_order((), "claude-x", listed)[0], ["anthropic", *listed.backends])
        self.assertEqual(backends_in_order((), "gemini-x", listed), (["google", "openai"], "gemini-x"))
        self.assertEqual(backends_in_order(("anthropic", "openai"), "", listed), (["anthropic", "openai"], ""))
        self.assertEqual(backends_in_order(("openai:gpt-4.1",), "", listed), (["openai:gpt-4.1"], ""))
        self.assertEqual(backends_in_order((), "", listed, ("google",)), (["google"], "gpt-5"))

    def test_every_provider_has_a_backend(self) -> None:
        for backend in ("anthropic", "openai", "google"):
            chosen = self.choose(backend)
            self.assertEqual((chosen.provider.name, self.keys_asked.pop()), (backend, backend))
            self.assertTrue(chosen.model)

    def test_a_server_of_ones_own_needs_an_address_and_a_model(self) -> None:
        local = {"base_url": "http://127.0.0.1:11434/v1"}
        chosen = self.choose("openai-chat:llama3", "", **{"openai-chat": local})
        self.assertEqual((chosen.provider.name, chosen.model), ("openai-chat", "llama3"))
        with self.assertRaisesRegex(ConfigurationError, "providers.openai-chat.base_url: is missing"):
            self.choose("openai-chat:llama3")
        with self.assertRaisesRegex(UsageError, "--backend openai-chat:MODEL"):
            self.choose("openai-chat", "", **{"openai-chat": local})

    def test_which_backends_need_a_key(self) -> None:
        for backend, has_source, needed in (
            ("anthropic", False, True),
            ("google:gemini-2.5-pro", False, True),
            ("openai-chat:llama3", False, False),
            ("openai-chat:llama3", True, True),
            ("subprocess:ollama run llama3", False, False),
        ):
            self.assertEqual(needs_key(backend, has_source), needed, backend)

    def test_the_model_comes_from_the_settings_or_the_provider(self) -> None:
        self.assertEqual(self.choose("anthropic", anthropic={"model": "claude-x"}).model, "claude-x")
        self.assertEqual(self.choose("anthropic", "claude-y", anthropic={"model": "claude-x"}).model, "claude-y")
        self.assertTrue(self.choose("anthropic").model.startswith("claude-"))

    def test_a_table_with_nothing_in_it_changes_nothing(self) -> None:
        chosen = self.choose("anthropic", anthropic=msgspec.to_builtins(Provider()))
        self.assertEqual((chosen.provider.name, chosen.model), ("anthropic", self.choose("anthropic").model))

    def test_an_unknown_backend_names_those_there_are(self) -> None:
        with self.assertRaisesRegex(UsageError, "anthropic, openai, openai-chat, google, scripted, subprocess"):
            self.choose("gpt")

    def test_a_script_is_named_on_the_command_line_or_in_the_settings(self) -> None:
        path = self.script()
        for backend, table in (("scripted:" + path, {}), ("scripted", {"script": path})):
            chosen = self.choose(backend, scripted=table)
            self.assertEqual((chosen.provider.name, chosen.model), ("scripted", "scripted"))
        self.assertEqual(self.keys_asked, [])

    def test_a_command_may_be_the_model(self) -> None:
        chosen = self.choose("subprocess:ollama run llama3")
        self.assertEqual((chosen.provider.name, chosen.model), ("subprocess", ""))
        self.assertEqual(self.keys_asked, [])
        for backend in ("subprocess", "subprocess: ", "subprocess:sh -c 'x"):
            with self.assertRaisesRegex(UsageError, "subprocess"):
                self.choose(backend)

    def test_a_backend_may_name_its_model(self) -> None:
        self.assertEqual(self.choose("anthropic:claude-haiku-5-5").model, "claude-haiku-5-5")
        self.assertEqual(self.choose("anthropic:claude-haiku-5-5", "claude-x").model, "claude-x")

    def test_the_settings_say_the_same_as_the_option(self) -> None:
        for model, backend in (
            (Model(), "anthropic"),
            (Model(backend="scripted", script="a.toml"), "scripted:a.toml"),
            (Model(backend="subprocess", command="ollama run llama3"), "subprocess:ollama run llama3"),
        ):
            self.assertEqual(configured_backend(model), backend)

    def test_several_backends_are_asked_in_turn(self) -> None:
        backends = ("anthropic", "anthropic:claude-haiku-5-5", "subprocess:cat")
        chosen = fallback_for(backends, "claude-x", {}, self.surroundings())
        self.assertEqual((chosen.provider.name, chosen.model, chosen.asked), ("anthropic", "claude-x", "claude-x"))
        with self.assertRaisesRegex(UsageError, "no backend 'gpt'"):
            fallback_for(("anthropic", "gpt"), "", {}, self.surroundings())

    def test_a_script_must_be_named(self) -> None:
        with self.assertRaisesRegex(UsageError, "scripted:FILE"):
            self.choose("scripted")

    def test_a_key_is_never_sent_in_the_clear(self) -> None:
        for url in (
            "http://api.anthropic.com",
            "http://localhost.example:8080",
            "api.anthropic.com",
            "https://",
            "https://user@host",
            "https://host:99999",
            "https://host/?key=1",
            "https://[broken",
            "ftp://host",
        ):
            with self.assertRaisesRegex(ConfigurationError, "config.toml: providers.anthropic.base_url"):
                self.choose("anthropic", anthropic={"base_url": url})
        self.assertEqual(self.keys_asked, [])

    def test_but_to_this_machine_itself(self) -> None:
        for url in ("http://127.0.0.1:11434", "http://[::1]:11434/llm"):
            self.assertEqual(self.choose("anthropic", anthropic={"base_url": url}).provider.name, "anthropic")
        self.assertEqual(self.keys_asked, ["anthropic", "anthropic"])

    def test_the_fields_of_the_shared_table_are_accepted(self) -> None:
        table = {"host": "api.anthropic.com", "endpoints": ["POST /v1/messages"], "key": {"env": "ANTHROPIC_API_KEY"}}
        self.assertEqual(self.choose("anthropic", anthropic=table).provider.name, "anthropic")

    def test_wrong_fields_are_named(self) -> None:
        with self.assertRaisesRegex(ConfigurationError, r"providers.anthropic: .*\$.port"):
            self.choose("anthropic", anthropic={"host": "h", "port": "https"})

    def test_a_ca_file_must_hold_certificates(self) -> None:
        for content, why in ((b"", "no PEM"), (b"-----BEGIN CERTIFICATE-----\nx\n", "not PEM")):
            path = self.script(content)
            with self.assertRaisesRegex(ConfigurationError, f"{path}: ca_file: .*{why}"):
                self.choose("anthropic", anthropic={"ca_file": path})
        with self.assertRaisesRegex(ConfigurationError, "cannot be read"):
            self.choose("anthropic", anthropic={"ca_file": "/nowhere/ca.pem"})

    def test_a_file_may_lie_in_the_persons_home(self) -> None:
        home, name = os.path.split(self.script(b""))
        self.addCleanup(os.environ.update, HOME=os.environ["HOME"])
        os.environ["HOME"] = home
        with self.assertRaisesRegex(ConfigurationError, "contains no PEM certificate"):
            self.choose("anthropic", anthropic={"ca_file": f"~/{name}"})

    def script(self, content: bytes = b"version = 1\n[[turns]]\ntext = 'Hi.'\n") -> str:
        return written(self, content)
