"""The built-in agent with the models of each provider, as processes: the product, and a server of the real formats."""

from __future__ import annotations

import os
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.shell import shell
from ironcurtain.session.history import read_turns
from tests.cli.cases import ProductCase
from tests.model_stub.process import StubProcess

RUN = {"type": "tool_use", "name": "execute_code", "input": {"code": "print(6 * 7)"}}
PROVIDERS = (
    ("anthropic", "", "ANTHROPIC_API_KEY"),
    ("openai", "", "OPENAI_API_KEY"),
    ("openai-chat", "/v1", "EXAMPLE_KEY"),
    ("google", "", "GOOGLE_API_KEY"),
)


def said(*chunks: str, **fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "chunks": chunks}], **fields}


class BackendOptionTests(SynchronousTestCase):
    def test_a_variable_holds_one_backend_with_its_spaces(self) -> None:
        self.patch(os, "environ", {**os.environ, "UNIXAGENT_BACKEND": "subprocess:ollama run llama3"})
        self.assertEqual(shell.make_context("shell", []).params["backend"], ("subprocess:ollama run llama3",))
        given = ["--backend", "openai", "--backend", "google"]
        self.assertEqual(shell.make_context("shell", given).params["backend"], ("openai", "google"))


class ModelProductTests(ProductCase):
    def setUp(self) -> None:
        super().setUp()
        self.stub = StubProcess()
        self.addCleanup(self.stub.close)
        self.product.home.mkdir(mode=0o700)
        tables = [
            f'[providers.{name}]\nbase_url = "{self.stub.url}{root}"\nca_file = "{self.stub.ca}"'
            for name, root, _ in PROVIDERS
        ]
        tables.append('[providers.openai-chat.key]\nenv = "EXAMPLE_KEY"')
        (self.product.home / "config.toml").write_text("\n".join(tables))
        for name, _, variable in PROVIDERS:
            self.product.environ[variable] = self.stub.keys[name]

    def test_each_provider_runs_code_and_answers(self) -> None:
        for name, *chosen in (
            ("anthropic", "--backend", "anthropic"),
            ("openai", "--model", "gpt-5.4"),
            ("openai-chat", "--backend", "openai-chat:m-1"),
            ("google", "--model", "gemini-2.5-flash"),
        ):
            self.stub.add({"content": [RUN]}, said("It is ", "42."))
            done = self.product.run("start", *chosen, "6 * 7?")
            self.assertEqual((done.returncode, done.stdout), (0, "It is 42.\n"), f"{name}: {done.stderr}")
            self.assertEqual([turn["provider"] for turn in self.stub.turns[-2:]], [name, name])
            self.assertEqual(self.stub.turns[-1]["results"], ["42"])

    def test_the_next_one_is_asked_and_that_is_told(self) -> None:
        self.product.environ["OPENAI_API_KEY"] = "sk-proj-CANARY"
        self.stub.add(said("Hi."))
        done = self.product.run("start", "--backend", "openai", "--backend", "google", "hello")
        self.assertEqual((done.returncode, done.stdout), (0, "Hi.\n"), done.stderr)
        self.assertIn(
            "openai (gpt-6.1-sol) gave no answer (the key from environment variable OPENAI_API_KEY", done.stderr
        )
        self.assertIn("google (gemini-3.1-pro-preview) is asked instead", done.stderr)
        self.assertNotIn("CANARY", done.stdout + done.stderr)

    def test_an_answer_that_broke_off_is_kept_and_continued(self) -> None:
        self.stub.add(said("The first half, ", "lost", end="cut", after=5), said("and the second."))
        done = self.product.run("start", "--backend", "openai", stdin="tell me\ngo on\n")
        self.assertIn("the model's answer broke off: localhost closed the connection", done.stderr)
        self.assertIn("say 'go on' to continue", done.stderr)
        self.assertEqual(done.stdout, "and the second.\n")
        self.assertIn("The first half,", done.stderr)
        self.assertEqual(len(self.stub.turns), 2)
        sent = self.stub.turns[1]["json"]["input"]
        self.assertEqual([item["content"] for item in sent][1], "The first half, ")
        (path,) = self.product.home.glob("sessions/*/history.jsonl")
        first, second = read_turns(path)
        self.assertEqual((first.answer, second.answer), ("The first half, ", "and the second."))
        self.assertIn("broke off", first.error)

    def test_a_refusal_in_mid_answer_fails_and_its_text_goes_nowhere(self) -> None:
        self.stub.add(said("Sure, first you ", "mix", stop_reason="refusal"), said("Here."))
        done = self.product.run("start", "--backend", "anthropic", "tell me")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("refused to answer: say it differently", done.stderr)
        again = self.product.run("start", "-r", "last", "--backend", "anthropic", "go on")
        self.assertEqual((again.returncode, again.stdout), (0, "Here.\n"), again.stderr)
        self.assertNotIn("Sure", str(self.stub.turns[1]["json"]))
