"""The protocol state of one agent's connection."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import TOO_LONG
from ironcurtain.mcp_proxy.session import (
    NEWEST_VERSION,
    OPEN_BYTES,
    OPEN_REQUESTS,
    VERSIONS,
    AgentSession,
    Answered,
    Cancel,
    Initialized,
    SendLine,
    Start,
)

METHODS = frozenset(("initialize", "tools/list", "tools/call"))
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"sampling": {}}}


def message(**members: Any) -> bytes:
    """:returns: one line."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def request(identifier: Any, method: str, params: Any = None) -> bytes:
    """:returns: a request's line."""
    return message(id=identifier, method=method, **({} if params is None else {"params": params}))


def sent(command: object) -> dict[str, Any]:
    """:returns: the message that a command sends."""
    line = command.line if isinstance(command, SendLine) else command
    assert isinstance(line, bytes), command
    return dict(json.loads(line))


class Base(SynchronousTestCase):
    """One session."""

    def setUp(self) -> None:
        self.session = AgentSession(METHODS)

    def ready(self) -> AgentSession:
        """:returns: the session after its handshake."""
        start = self.session.receive(request("hello", "initialize", HELLO))
        assert isinstance(start, Start)
        self.session.finish(start.key, b"{}")
        self.session.receive(message(method="notifications/initialized"))
        return self.session

    def error(self, line: bytes) -> tuple[int, Any]:
        """:returns: the error code and id that a line is answered with."""
        answer = sent(self.session.receive(line))
        return answer["error"]["code"], answer["id"]

    def start(self, identifier: Any, params: Any = None) -> Start:
        """:returns: what a call starts."""
        command = self.session.receive(request(identifier, "tools/call", params))
        assert isinstance(command, Start), command
        return command


class LifecycleTests(Base):
    """Before, during and after the handshake."""

    def test_ping_is_always_answered(self) -> None:
        for identifier in (1, "1"):
            self.assertEqual(sent(self.session.receive(request(identifier, "ping")))["id"], identifier)
        self.ready()
        self.assertEqual(sent(self.session.receive(request(1, "ping"))), {"jsonrpc": "2.0", "id": 1, "result": {}})

    def test_before_initialize_nothing_else(self) -> None:
        self.assertEqual(self.error(request(1, "tools/list")), (codec.INVALID_REQUEST, 1))
        self.assertIsNone(self.session.receive(message(method="notifications/initialized")))
        self.assertFalse(self.session.initialized)

    def test_known_versions_are_spoken_and_others_get_the_newest(self) -> None:
        for asked, spoken in [*((v, v) for v in VERSIONS), ("2026-07-28", NEWEST_VERSION), ("1.0", NEWEST_VERSION)]:
            session = AgentSession(METHODS)
            session.receive(request(1, "initialize", {"protocolVersion": asked}))
            self.assertEqual(session.version, spoken)

    def test_a_second_initialize_is_refused(self) -> None:
        self.ready()
        self.assertEqual(self.error(request(2, "initialize", HELLO)), (codec.INVALID_REQUEST, 2))

    def test_initialize_needs_a_version(self) -> None:
        wrong: list[Any] = [None, {}, {"protocolVersion": 7}, []]
        for params in wrong:
            code, _ = self.error(request(1, "initialize", params))
            self.assertEqual(code, codec.INVALID_PARAMS)
        self.assertEqual(self.session.version, "")

    def test_initialize_that_failed_may_be_repeated(self) -> None:
        start = self.session.receive(request(1, "initialize", HELLO))
        assert isinstance(start, Start)
        self.session.fail(start.key, b'{"code":1,"message":""}')
        self.assertIsInstance(self.session.receive(request(1, "initialize", HELLO)), Start)

    def test_initialized_is_told_once(self) -> None:
        self.session.receive(request(1, "initialize", HELLO))
        line = message(method="notifications/initialized")
        self.assertIsInstance(self.session.receive(line), Initialized)
        self.assertIsNone(self.session.receive(line))

    def test_unknown_methods_end_here(self) -> None:
        for method in ("server/discover", "x/batch", "tasks/get", "Tools/call", "tools/call ", "roots/list", ""):
            self.assertEqual(self.error(request(1, method)), (codec.METHOD_NOT_FOUND, 1))
        self.ready()
        self.assertEqual(self.error(request(1, "tasks/list")), (codec.METHOD_NOT_FOUND, 1))

    def test_unknown_notifications_are_dropped(self) -> None:
        self.ready()
        for method in ("notifications/roots/list_changed", "notifications/progress", "x", "tools/call"):
            self.assertIsNone(self.session.receive(message(method=method)))


class RequestTests(Base):
    """Ids, answers, cancellation, limits."""

    def test_ids_keep_their_type_and_value(self) -> None:
        self.ready()
        for identifier in (0, -1, 2**63 - 1, "", "1", "x" * 500):
            start = self.start(identifier)
            answer = sent(self.session.finish(start.key, b'{"a": 1.10}'))
            self.assertEqual((answer["id"], type(answer["id"])), (identifier, type(identifier)))

    def test_an_id_in_flight_is_refused_and_its_request_lives(self) -> None:
        self.ready()
        start, other = self.start(1), self.start("1")
        self.assertEqual(self.error(request(1, "tools/call")), (codec.INVALID_REQUEST, 1))
        self.assertEqual(self.error(request(1, "ping")), (codec.INVALID_REQUEST, 1))
        self.assertEqual(sent(self.session.finish(start.key, b"{}"))["id"], 1)
        self.assertEqual(sent(self.session.finish(other.key, b"{}"))["id"], "1")
        self.assertNotEqual(self.start(1).key, start.key)

    def test_an_answer_is_given_once(self) -> None:
        self.ready()
        start = self.start(1)
        self.session.finish(start.key, b"{}")
        self.assertIsNone(self.session.finish(start.key, b"{}"))
        self.assertIsNone(self.session.fail(start.key, b"{}"))

    def test_what_is_cancelled_is_never_answered(self) -> None:
        self.ready()
        start = self.start(1)
        cancelled = message(method="notifications/cancelled", params={"requestId": 1})
        self.assertEqual(self.session.receive(cancelled), Cancel(start.key))
        self.assertIsNone(self.session.receive(cancelled))
        again = self.start(1)
        self.assertIsNone(self.session.finish(start.key, b"{}"))
        self.assertIsNotNone(self.session.finish(again.key, b"{}"))

    def test_cancelling_what_is_not_there_changes_nothing(self) -> None:
        self.ready()
        start = self.start(1)
        others: list[Any] = [{"requestId": other} for other in ("1", 2, True, 1.0, None)]
        for params in (*others, {}, [], None):
            line = message(method="notifications/cancelled", **({} if params is None else {"params": params}))
            self.assertIsNone(self.session.receive(line), params)
        self.assertIsNotNone(self.session.finish(start.key, b"{}"))

    def test_initialize_cannot_be_cancelled(self) -> None:
        self.session.receive(request(1, "initialize", HELLO))
        line = message(method="notifications/cancelled", params={"requestId": 1})
        self.assertIsNone(self.session.receive(line))

    def test_progress_tokens_are_texts_and_integers(self) -> None:
        self.ready()
        tokens = [("t", "t"), (0, 0), ("", ""), (True, None), (1.5, None), (None, None), ([], None)]
        for number, (given_token, kept) in enumerate(tokens):
            start = self.start(number, {"_meta": {"progressToken": given_token}})
            self.assertEqual(self.session.progress_token(start.key), kept)
        self.assertIsNone(self.session.progress_token(self.start("a", {"_meta": 7}).key))

    def test_parameters_are_objects(self) -> None:
        self.ready()
        self.assertEqual(self.error(request(1, "tools/call", [1])), (codec.INVALID_PARAMS, 1))

    def test_open_requests_are_bounded(self) -> None:
        self.ready()
        starts = [self.start(number) for number in range(OPEN_REQUESTS)]
        self.assertEqual(self.error(request("more", "tools/call")), (codec.INTERNAL_ERROR, "more"))
        self.assertEqual(sent(self.session.receive(request("ping", "ping")))["id"], "ping")
        self.session.finish(starts[0].key, b"{}")
        self.start("more")

    def test_open_bytes_are_bounded(self) -> None:
        self.ready()
        large = {"x": "y" * (OPEN_BYTES // 4)}
        starts = [self.start(number, large) for number in range(3)]
        self.assertEqual(self.error(request("more", "tools/call", large)), (codec.INTERNAL_ERROR, "more"))
        self.session.finish(starts[0].key, b"{}")
        self.start("more", large)

    def test_what_is_no_message_is_answered_and_the_connection_lives(self) -> None:
        self.assertEqual(self.error(b"{"), (codec.PARSE_ERROR, None))
        self.assertEqual(self.error(b"[]"), (codec.INVALID_REQUEST, None))
        self.assertEqual(sent(self.session.receive(TOO_LONG))["error"]["code"], codec.INVALID_REQUEST)
        self.assertEqual(self.session.junk, 3)
        self.ready()
        self.assertEqual(self.session.junk, 0)


class QuestionTests(Base):
    """What we ask the agent."""

    def test_an_answer_counts_once(self) -> None:
        self.ready()
        number, send = self.session.ask("sampling/createMessage", b'{"x": 1}')
        self.assertEqual(sent(send)["params"], {"x": 1})
        answer = message(id=number, result={"y": 2})
        self.assertEqual(self.session.receive(answer), Answered(number, b'{"y": 2}', None))
        self.assertIsNone(self.session.receive(answer))

    def test_stray_answers_are_dropped(self) -> None:
        self.ready()
        number, _ = self.session.ask("m", None)
        for identifier in (number + 1, str(number), None):
            self.assertIsNone(self.session.receive(message(id=identifier, result={})))
        self.assertEqual(
            self.session.receive(message(id=number, error={"code": 1})), Answered(number, None, b'{"code": 1}')
        )

    def test_a_question_can_be_taken_back(self) -> None:
        self.ready()
        number, _ = self.session.ask("m", None)
        taken = sent(self.session.withdraw(number))
        self.assertEqual((taken["method"], taken["params"]), ("notifications/cancelled", {"requestId": number}))
        self.assertIsNone(self.session.withdraw(number))
        self.assertIsNone(self.session.receive(message(id=number, result={})))


class Traffic(RuleBasedStateMachine):
    """Requests, answers and cancellations in any order: each request is answered once, or cancelled and never."""

    def __init__(self) -> None:
        super().__init__()
        self.session = AgentSession(METHODS)
        start = self.session.receive(request("hello", "initialize", HELLO))
        assert isinstance(start, Start)
        self.session.finish(start.key, b"{}")
        self.open: dict[Any, int] = {}
        self.done: list[int] = []

    @rule(identifier=st.one_of(st.integers(0, 3), st.sampled_from("0123")))
    def ask(self, identifier: Any) -> None:
        command = self.session.receive(request(identifier, "tools/call", {}))
        if identifier in self.open:
            assert sent(command)["error"]["code"] == codec.INVALID_REQUEST
        else:
            assert isinstance(command, Start) and command.key not in self.done
            self.open[identifier] = command.key

    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        if self.open:
            identifier = data.draw(st.sampled_from(list(self.open)))
            key = self.open.pop(identifier)
            self.done.append(key)
            answer = sent(self.session.finish(key, b"{}"))
            assert answer["id"] == identifier and type(answer["id"]) is type(identifier)

    @rule(identifier=st.one_of(st.integers(0, 3), st.sampled_from("0123")))
    def cancel(self, identifier: Any) -> None:
        command = self.session.receive(message(method="notifications/cancelled", params={"requestId": identifier}))
        key = self.open.pop(identifier, None)
        assert command == (None if key is None else Cancel(key))
        self.done += [] if key is None else [key]

    @invariant()
    def nothing_is_answered_twice(self) -> None:
        assert all(self.session.finish(key, b"{}") is None for key in self.done)


TrafficTests = Traffic.TestCase
TrafficTests.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


class AnyBytesTests(Base):
    """Nothing that an agent sends breaks the session."""

    @given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([request(1, "ping"), message(id=1, result=1)]))))
    def test_it_stays_alive(self, lines: list[bytes]) -> None:
        session = AgentSession(METHODS)
        for line in lines:
            session.receive(line)
        self.assertEqual(sent(session.receive(request("last", "ping")))["id"], "last")
