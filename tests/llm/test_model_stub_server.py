"""The stub over HTTPS, as a process of its own: keys, errors, broken connections, and what it tells of requests."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twisted.trial.unittest import SynchronousTestCase

from tests.model_stub.process import StubProcess

ROOT = Path(__file__).parents[2]
PROVIDERS = ("anthropic", "openai", "google")
ANTHROPIC = {"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}


class Client:
    """Asks the stub as three providers' clients do."""

    PATHS = {  # noqa: RUF012
        "anthropic": "/v1/messages",
        "openai": "/v1/responses",
        "google": "/v1beta/models/m:streamGenerateContent?alt=sse",
    }
    HEADERS = {"anthropic": "x-api-key", "openai": "authorization", "google": "x-goog-api-key"}  # noqa: RUF012

    def __init__(self, stub: StubProcess) -> None:
        self.stub = stub
        self.trust = ssl.create_default_context(cafile=stub.ca)

    def headers(self, provider: str, key: str) -> dict[str, str]:
        value = f"Bearer {key}" if provider == "openai" else key
        return {self.HEADERS[provider]: value, "anthropic-version": "2023-06-01", "content-type": "application/json"}

    def body(self, provider: str) -> dict[str, Any]:
        if provider == "google":
            return {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
        fields: dict[str, Any] = {"model": "m", "stream": True}
        return fields | (ANTHROPIC if provider == "anthropic" else {"input": "Hi"})

    def ask(
        self, provider: str, *, key: str = "", path: str = "", **more: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """:raises http.client.HTTPException: the answer is not whole, or there is none."""
        headers = {**self.headers(provider, key or self.stub.keys[provider]), **more}
        sent = json.dumps(self.body(provider))
        return self.request("POST", path or self.PATHS[provider], sent, headers)

    def request(
        self, method: str, path: str, sent: str = "", headers: dict[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPSConnection(
            "localhost", urlsplit(self.stub.url).port, timeout=60, context=self.trust
        )
        try:
            connection.request(method, path, sent, headers or {})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()


class ServerTests(SynchronousTestCase):
    """One process for all tests; each uses up what it scripts."""

    stub: StubProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.stub = StubProcess(names=["model.example"])

    @classmethod
    def tearDownClass(cls) -> None:
        cls.stub.close()

    def setUp(self) -> None:
        self.client = Client(self.stub)
        self.before = len(self.stub.requests)
        self.assertEqual(self.stub.left, 0)

    def new(self) -> list[dict[str, Any]]:
        return self.stub.requests[self.before :]

    def script(self, *entries: dict[str, Any]) -> None:
        self.stub.add(*entries)

    def test_one_script_for_every_api(self) -> None:
        self.script(*[{"content": [{"type": "text", "chunks": ["Hel", "lo"]}]}] * 3)
        for provider, event in zip(PROVIDERS, (b'"message_stop"', b'"response.completed"', b'"STOP"'), strict=True):
            response, told = self.client.ask(provider)
            self.assertEqual(
                (response.status, response.getheader("content-type")), (200, "text/event-stream; charset=utf-8")
            )
            self.assertTrue(event in told and b'"Hel"' in told, told)
        self.assertEqual({made["host"] for made in self.new()}, {f"localhost:{self.stub.port}"})
        seen = [(made["provider"], made["purpose"], made["said"], made["end"]) for made in self.new()]
        self.assertEqual(seen, [(provider, "turn", "Hi", "finished") for provider in PROVIDERS])

    def test_a_key_is_good_for_its_own_provider_in_its_own_header(self) -> None:
        for provider in PROVIDERS:
            for key in ("wrong", *(self.stub.keys[other] for other in PROVIDERS if other != provider)):
                self.assertEqual(self.client.ask(provider, key=key)[0].status, 401)
            headers = {name: self.stub.keys[provider] for name in ("x-key", "api-key", "cookie")}
            headers["authorization"] = f"Basic {self.stub.keys[provider]}"
            sent = json.dumps(self.client.body(provider))
            response, told = self.client.request("POST", Client.PATHS[provider], sent, headers)
            self.assertEqual(response.status, 401)
            self.assertTrue(json.loads(told)["error"]["message"])
        self.assertEqual({made["purpose"] for made in self.new()}, {""})
        self.assertTrue(all(made["refused"] for made in self.new()))

    def test_errors_have_the_shape_of_the_api(self) -> None:
        self.script({"status": 429, "headers": {"retry-after": "7"}, "message": "slow down", "times": 3})
        for provider in PROVIDERS:
            response, told = self.client.ask(provider)
            self.assertEqual((response.status, response.getheader("retry-after")), (429, "7"))
            self.assertEqual(json.loads(told)["error"]["message"], "slow down")
            self.assertEqual(b'"7s"' in told, provider == "google")

    def test_the_key_comes_back_where_a_test_wants_it(self) -> None:
        mark = "{{key}}"
        answer = {
            "content": [
                {"type": "text", "chunks": ["{{key}}, {{key:base64}}"]},
                {"type": "text", "chunks": ["{{key:escaped}}"]},
            ],
            "headers": {"x-echo": mark},
            "slice": 5,
        }
        self.script(*[answer, {"status": 403, "message": mark, "headers": {"x-echo": mark}}] * 3)
        for provider in PROVIDERS:
            key = self.stub.keys[provider]
            response, told = self.client.ask(provider)
            self.assertEqual(response.getheader("x-echo"), key)
            self.assertIn(key.encode() + b", " + base64.b64encode(key.encode()), told)
            self.assertIn("".join(f"\\u{ord(character):04x}" for character in key).encode(), told)
            self.assertNotIn(b"{{", told)
            response, told = self.client.ask(provider)
            self.assertEqual((response.getheader("x-echo"), json.loads(told)["error"]["message"]), (key, key))

    def test_connections_that_end_too_soon(self) -> None:
        cut = {"content": [{"type": "text", "chunks": ["Hel", "lo"]}], "end": "cut", "after": 1}
        self.script(*[cut] * 3, *[{"drop": True}] * 3)
        for provider in PROVIDERS:
            with self.assertRaises(http.client.IncompleteRead) as caught:
                self.client.ask(provider)
            self.assertEqual(caught.exception.partial.count(b"data: "), 1)
        for provider in PROVIDERS:
            with self.assertRaises((http.client.RemoteDisconnected, ConnectionResetError)):
                self.client.ask(provider)

    def test_a_stream_that_ends_with_an_error(self) -> None:
        self.script(*[{"end": "error", "after": 1, "error": ["rate_limit_error", "enough"]}] * 3)
        for provider, named in zip(
            PROVIDERS, (b"rate_limit_error", b"rate_limit_exceeded", b"RESOURCE_EXHAUSTED"), strict=True
        ):
            _, told = self.client.ask(provider)
            self.assertEqual((told.count(b"data: "), named in told, b"enough" in told), (2, True, True))

    def test_a_turn_without_a_script_is_refused(self) -> None:
        for provider in PROVIDERS:
            response, told = self.client.ask(provider)
            self.assertEqual((response.status, json.loads(told)["error"]["message"]), (400, "no reply is left"))

    def test_what_is_asked_on_the_side_leaves_the_script_alone(self) -> None:
        self.script({"content": []})
        for provider, path in (
            ("anthropic", "/v1/messages/count_tokens"),
            ("openai", "/v1/responses/input_tokens"),
            ("google", "/v1beta/models/m:countTokens"),
        ):
            response, told = self.client.ask(provider, path=path)
            self.assertEqual((response.status, b"okens" in told), (200, True))
        for provider, path in zip(PROVIDERS, ("/v1/models", "/v1/models", "/v1beta/models"), strict=True):
            headers = self.client.headers(provider, self.stub.keys[provider])
            response, told = self.client.request("GET", path, headers=headers)
            self.assertEqual(
                (response.status, {"anthropic": b"claude", "openai": b"gpt", "google": b"gemini"}[provider] in told),
                (200, True),
            )
        self.client.request("POST", "/api/event_logging/v2/batch", "[]")
        self.client.ask("anthropic", **{"user-agent": "opencode/1.18.33"})
        purposes = ["count"] * 3 + ["models"] * 3 + ["telemetry", "aside"]
        self.assertEqual([made["purpose"] for made in self.new()], purposes)
        self.assertEqual((self.stub.left, self.new()[-1]["agent"]), (1, "opencode"))
        self.client.ask("openai")
        self.assertEqual(self.stub.turns[-1]["path"], "/v1/responses")

    def test_a_call_that_the_agent_cannot_make_is_refused_and_stays(self) -> None:
        self.script({"content": [{"type": "mcp_call", "name": "t", "arguments": {}}]})
        for _ in range(2):
            response, told = self.client.ask("google")
            self.assertEqual((response.status, "no tool of ironcurtain is t" in told.decode()), (400, True))
        self.assertIn("no tool of ironcurtain is t", self.new()[-1]["refused"])
        self.stub.drop()

    def test_what_is_not_spoken_here(self) -> None:
        response, _ = self.client.request(
            "GET", "/v1/responses", headers={"connection": "upgrade", "upgrade": "websocket"}
        )
        self.assertEqual(response.status, 426)
        for path, shape in (("/v1/x", "type"), ("/v1beta/x", "status"), ("/v1/responses/x", "param")):
            response, told = self.client.request("POST", path, "{}")
            self.assertEqual((response.status, shape in json.loads(told)["error"]), (404, True))

    def test_held_answers_go_on_event_by_event(self) -> None:
        self.stub.release(3)
        self.script({"content": [{"type": "text", "chunks": ["a"]}], "held": True, "end": "short", "after": 3})
        self.assertEqual(self.client.ask("openai")[1].count(b"data: "), 3)

    def test_the_certificate_has_the_names_that_agents_call(self) -> None:
        certificate = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("localhost", self.stub.port)))
        for name in (b"api.anthropic.com", b"api.openai.com", b"generativelanguage.googleapis.com", b"model.example"):
            self.assertIn(name, certificate)


class CommandTests(SynchronousTestCase):
    def run_it(self, *words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "tests.model_stub", *words]
        return subprocess.run(line, cwd=ROOT, text=True, capture_output=True, timeout=60, check=False)

    def test_its_help_says_how_to_write_a_script(self) -> None:
        done = self.run_it("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("--script", "mcp_call", "{{key}}", "/stub/requests", "api.openai.com"):
            self.assertIn(word, done.stdout)

    def test_a_key_of_nobody(self) -> None:
        done = self.run_it("--ca-out", os.devnull, "--key", "mistral=k")
        self.assertEqual(done.returncode, 2)
        self.assertIn("anthropic=KEY", done.stderr)
