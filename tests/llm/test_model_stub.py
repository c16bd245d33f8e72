"""The stub is strict where the real APIs are, so that a passing test means something; and it runs on its own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.llm.model import ChatMessage, ModelRequest, TextBlock
from ironcurtain.llm.registry import ModelSurroundings, provider_for
from ironcurtain.secrets.redaction import Secret
from tests.http.direct import DIRECT
from tests.llm.files import written
from tests.model_stub.anthropic import Invalid, check_body, check_headers
from tests.model_stub.replies import Dropped, Refusal, parse_replies

ROOT = Path(__file__).parents[2]
TOOL = {"name": "t", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "t1", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def model(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def body(*messages: Any, **fields: Any) -> bytes:
    whole = {"model": "m", "max_tokens": 10, "messages": list(messages) or [user(text("Hi"))], **fields}
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


class RulesTests(SynchronousTestCase):
    def test_a_good_conversation_passes(self) -> None:
        check_body(body(user(text("Hi")), model(text("Look."), USE), user(RESULT, text("and?")), tools=[TOOL]))

    def test_what_the_api_refuses_is_refused(self) -> None:
        mark = {"cache_control": {"type": "ephemeral"}}
        for sent, named in (
            (b"{", "not valid JSON"),
            (b"[]", "valid dictionary"),
            (body(model=None), "model: Field required"),
            (body(max_tokens=None), "max_tokens: Field required"),
            (body(max_tokens=0), "greater than"),
            (body(max_tokens="10"), "valid int"),
            (body(messages=[]), "at least one message"),
            (body(colour="red"), "colour: Extra inputs"),
            (body(model(text("Hi"))), "alternate"),
            (body(user(text("Hi")), user(text("Hi"))), "alternate"),
            (body({"role": "system", "content": "x"}), "role"),
            (body(user()), "non-empty content"),
            (body(user(text(" "))), "non-whitespace"),
            (body(user(text("Hi")), model(text("So"))), "prefill"),
            (body(user({"type": "audio"})), "Input tag 'audio'"),
            (body(user(USE)), "Input tag 'tool_use'"),
            (body(user(text("Hi")), model(USE), user(text("no"))), "messages.1: `tool_use` ids were found without"),
            (body(user(text("Hi")), model(text("So")), user(RESULT)), "messages.2.content.0: unexpected `tool_use_id`"),
            (body(user(RESULT)), "unexpected `tool_use_id`"),
            (body(user(text("Hi")), model(USE), user(text("first"), RESULT)), "must come first"),
            (body(user(text("Hi")), model(USE, USE), user(RESULT)), "unique"),
            (body(user(text("Hi")), model({"type": "thinking", "thinking": "x"}), user(text("a"))), "signature"),
            (body(tools=[{"name": "a b", "input_schema": {"type": "object"}}]), "should match pattern"),
            (body(tools=[{"name": "ab", "input_schema": {}}]), "input_schema"),
            (body(user(*[text("Hi") | mark] * 5)), "maximum of 4 blocks"),
            (body(system=[text("")]), "system.0"),
        ):
            with self.assertRaises(Invalid, msg=named) as caught:
                check_body(sent)
            self.assertIn(named, str(caught.exception))
            self.assertEqual(caught.exception.status, 400)

    def test_a_request_that_is_too_large_has_a_status_of_its_own(self) -> None:
        with self.assertRaises(Invalid) as caught:
            check_body(b" " * (32 * 1024 * 1024 + 1))
        self.assertEqual(caught.exception.status, 413)

    def test_headers(self) -> None:
        good = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
        check_headers(good, frozenset("k"))
        for name, value, status in (
            ("x-api-key", "other", 401),
            ("x-api-key", None, 401),
            ("anthropic-version", None, 400),
            ("content-type", "text/plain", 400),
        ):
            headers = {key: kept for key, kept in {**good, name: value}.items() if kept is not None}
            with self.assertRaises(Invalid) as caught:
                check_headers(headers, frozenset("k"))
            self.assertEqual(caught.exception.status, status)


class ScriptTests(SynchronousTestCase):
    def test_an_entry_may_stand_for_several(self) -> None:
        script = {"replies": [{"status": 500, "times": 2}, {"drop": True}]}
        self.assertEqual(parse_replies(json.dumps(script)), [Refusal(500), Refusal(500), Dropped()])

    def test_what_is_wrong_in_it_is_said(self) -> None:
        for entry, named in (
            ({"status": 500, "colour": "red"}, "colour"),
            ({"content": [{"type": "noise"}]}, "noise"),
            ({"drop": False}, "drop"),
            ({"status": 500, "times": "2"}, "int"),
        ):
            with self.assertRaises(ValueError) as caught:
                parse_replies(json.dumps({"replies": [entry]}))
            self.assertIn(named, str(caught.exception))


class _Process(ProcessProtocol):
    def __init__(self) -> None:
        self.line: Deferred[bytes] = Deferred()
        self.ended: Deferred[None] = Deferred()
        self._out = self._err = b""

    def outReceived(self, data: bytes) -> None:
        self._out += data
        if b"\n" in self._out and not self.line.called:
            self.line.callback(self._out)

    def errReceived(self, data: bytes) -> None:
        self._err += data

    def processEnded(self, reason: Failure) -> None:
        reason.trap(ProcessDone, ProcessTerminated)
        if not self.line.called:
            self.line.errback(AssertionError(self._err.decode()))
        self.ended.callback(None)


def _later(clock: Clock) -> None:
    reactor.callLater(0, clock.advance, 1)


class ProcessTests(TestCase):
    async def test_it_runs_as_a_process_and_is_reached_through_the_settings(self) -> None:
        said = {"replies": [{"status": 529}, {"content": [{"type": "text", "chunks": ["Hi", "!"]}], "pause": 0.001}]}
        script, ca = written(self, json.dumps(said).encode()), written(self, b"")
        process = _Process()
        arguments = [sys.executable, "-m", "tests.model_stub", "--script", script, "--ca-out", ca]
        spawned: Any = reactor.spawnProcess(process, sys.executable, arguments, env=dict(os.environ), path=str(ROOT))
        try:
            where = json.loads(await process.line)
            clock = Clock()
            table = {"base_url": where["url"], "ca_file": where["ca"]}
            around = ModelSurroundings(
                reactor, clock, lambda: 0.5, lambda name: Secret(where["keys"][name]), 9.0, DIRECT
            )
            chosen = provider_for("anthropic", "", {"anthropic": table}, around)
            asked = ModelRequest("", (ChatMessage("user", (TextBlock("Hi"),)),), (), chosen.model, 10)
            reply = await chosen.provider.converse(asked, lambda _: _later(clock))
            self.assertEqual(reply.content, (TextBlock("Hi!"),))
        finally:
            spawned.signalProcess("KILL")
            await process.ended
