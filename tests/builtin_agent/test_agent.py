"""The loop of the built-in agent: with a model of given replies and an interpreter that records."""

from __future__ import annotations

import base64
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.builtin_agent.agent import BuiltinAgent
from ironcurtain.builtin_agent.records import (
    AnyRecord,
    Called,
    CallEnded,
    Ended,
    Replied,
    Results,
    Said,
    Shorter,
    Started,
    encode,
)
from ironcurtain.builtin_agent.window import Window
from ironcurtain.codemode.model import RunResult, ToolReply
from ironcurtain.errors import SessionError
from ironcurtain.llm.compaction import Strategy
from ironcurtain.llm.model import (
    ImageBlock,
    ModelError,
    ModelRequest,
    Retrying,
    TextBlock,
    TextDelta,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.llm.pictures import description
from ironcurtain.session import events
from ironcurtain.session.budget import BudgetLimits
from ironcurtain.view.events import describe
from tests.builtin_agent.agents import RUN, AgentCase, Model


class AgentTests(AgentCase):
    def test_an_answer_without_code_is_the_reply(self) -> None:
        agent = self.make([TextBlock("Four.")])
        reply = self.successResultOf(self.respond(agent))
        self.assertEqual(reply.text, "Four.")
        self.assertEqual((reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cost), (10, 5, 0.5))
        self.assertEqual(self.seen(events.AgentText), [events.AgentText(text="Four.")])

    def test_code_is_run_and_its_output_given_to_the_model(self) -> None:
        agent = self.make([TextBlock("Look."), RUN], [TextBlock("One.")])
        self.assertEqual(self.successResultOf(self.respond(agent)).text, "One.")
        self.assertEqual(self.interpreter.ran, ["print(1)"])
        self.assertEqual(self.model.requests[1].messages[-1].content, (ToolResult("t1", "1", False),))
        self.assertEqual(self.seen(events.CodeStarted), [events.CodeStarted(code="print(1)")])

    def test_the_model_is_told_of_tools_workspace_and_language(self) -> None:
        agent = self.make([TextBlock("Yes.")])
        self.successResultOf(self.respond(agent))
        request = self.model.requests[0]
        self.assertIn("read_file", request.system)
        self.assertIn("/workspace", request.system)
        self.assertIn("No files.", request.tools[0].description)

    def test_the_context_is_kept_from_message_to_message(self) -> None:
        agent = self.make([TextBlock("Hello, Ada.")], [TextBlock("Ada.")])
        self.successResultOf(self.respond(agent, "I am Ada."))
        self.successResultOf(self.respond(agent, "Who am I?"))
        blocks = [block for message in self.model.requests[1].messages for block in message.content]
        said = [block.text for block in blocks if isinstance(block, TextBlock)]
        self.assertEqual(said, ["I am Ada.", "Hello, Ada.", "Who am I?"])

    def test_a_tool_that_does_not_exist_is_an_error_for_the_model_and_runs_nothing(self) -> None:
        for use in (ToolUse("t1", "shell", {"code": "x"}), ToolUse("t1", "execute_code", {"code": 7})):
            agent = self.make([use], [TextBlock("Sorry.")])
            self.successResultOf(self.respond(agent))
            (result,) = self.model.requests[1].messages[-1].content
            assert isinstance(result, ToolResult)
            self.assertTrue(result.is_error)
            self.assertEqual(self.interpreter.ran, [])

    def test_the_steps_of_a_message_are_limited_and_the_next_message_goes_on(self) -> None:
        agent = self.make([RUN], [RUN], [RUN], [TextBlock("Done.")])
        failure = self.failureResultOf(self.respond(agent), SessionError)
        self.assertEqual(failure.value.code, "MESSAGE_FAILED")
        self.assertIn("agent.max_steps", str(failure.value))
        self.assertEqual(self.successResultOf(self.respond(agent, "go on")).text, "Done.")

    def test_a_failing_model_fails_the_message_and_its_tokens_are_counted(self) -> None:
        agent = self.make(ModelError("overloaded", "too busy", usage=Tokens(7, 0)), [TextBlock("Back.")])
        failure = self.failureResultOf(self.respond(agent), SessionError)
        self.assertEqual((failure.value.code, str(failure.value)), ("MESSAGE_FAILED", "too busy"))
        self.assertEqual(agent.usage().input_tokens, 7)
        self.assertEqual(self.successResultOf(self.respond(agent)).text, "Back.")

    def test_an_answer_that_broke_off_is_kept_and_the_next_message_goes_on(self) -> None:
        for shown, partial in ((TextDelta("The first half"), "The first half"), (ToolStarted("execute_code"), "")):
            agent = self.make(Deferred(), [TextBlock("and the second.")])
            responding = self.respond(agent)
            self.model.notify(shown)
            self.model.waiting.errback(ModelError("network", "localhost closed the connection"))
            error = self.failureResultOf(responding, SessionError).value
            self.assertEqual(error.partial, partial)
            self.assertTrue(str(error).startswith("the model's answer broke off: localhost closed the connection. "))
            self.assertIn("say 'go on'", str(error))
            self.assertEqual(self.successResultOf(self.respond(agent, "go on")).text, "and the second.")
            said = [b.text for m in self.model.requests[1].messages for b in m.content if isinstance(b, TextBlock)]
            self.assertEqual((said[0], len(said), said[-1]), ("hello", 3, "go on"))
            self.assertIn(partial or "this message got no answer", said[1])

    def test_the_text_of_a_refusal_is_not_kept(self) -> None:
        agent = self.make(Deferred(), [TextBlock("Here.")])
        responding = self.respond(agent)
        self.model.notify(TextDelta("Sure, first you"))
        self.model.waiting.errback(ModelError("refused", "it refused to answer (refusal)"))
        error = self.failureResultOf(responding, SessionError).value
        self.assertEqual((str(error), error.partial), ("it refused to answer (refusal)", ""))
        self.assertEqual(self.successResultOf(self.respond(agent, "go on")).text, "Here.")
        said = [b.text for m in self.model.requests[1].messages for b in m.content if isinstance(b, TextBlock)]
        self.assertEqual((said[0], len(said), said[-1]), ("hello", 3, "go on"))
        self.assertNotIn("Sure", "".join(said))

    def test_a_conversation_that_is_too_long_says_to_start_a_new_session(self) -> None:
        agent = self.make(ModelError("context-overflow", "prompt is too long"))
        self.assertIn("new session", str(self.failureResultOf(self.respond(agent), SessionError).value))

    def test_a_message_that_does_not_fit_is_left_out_of_what_follows(self) -> None:
        agent = self.make(ModelError("context-overflow", "prompt is too long"), [TextBlock("Hi.")])
        self.failureResultOf(self.respond(agent, "x" * 999), SessionError)
        self.assertEqual(self.successResultOf(self.respond(agent, "short")).text, "Hi.")
        said = words(self.model.requests[1])
        self.assertNotIn("xxx", said)
        self.assertIn("a message of 999 characters was left out", said)

    def test_commands_of_agents_in_containers_are_refused(self) -> None:
        agent = self.make()
        self.assertIn("no such command", str(self.failureResultOf(self.respond(agent, "/clear"), SessionError).value))

    def test_an_empty_answer_is_a_failure(self) -> None:
        agent = self.make([])
        self.assertIn("empty answer", str(self.failureResultOf(self.respond(agent), SessionError).value))

    def test_a_budget_warns_and_then_stops_before_the_next_request(self) -> None:
        agent = self.make([RUN], [RUN], [RUN], limits=BudgetLimits(tokens=18), max_steps=9)
        failure = self.failureResultOf(self.respond(agent), SessionError)
        self.assertIn("tokens", str(failure.value))
        self.assertEqual(len(self.model.requests), 2)
        self.assertEqual((len(self.seen(events.BudgetWarning)), len(self.seen(events.BudgetExhausted))), (1, 1))

    def test_usage_that_the_model_does_not_say_is_unknown_and_counts_in_the_budget(self) -> None:
        agent = self.make([RUN], [TextBlock("One.")], limits=BudgetLimits(tokens=1))
        self.model.usage = Tokens()
        self.assertIn("budget used up", str(self.failureResultOf(self.respond(agent), SessionError).value))
        self.assertEqual((agent.usage().token_tracking_available, len(self.model.requests)), (False, 1))

    def test_usage_that_the_model_does_not_say_is_not_estimated_without_a_limit(self) -> None:
        counted: list[str] = []

        def count(text: str) -> int:
            counted.append(text)
            return len(text)

        agent = self.make([TextBlock("One.")], window=Window(Strategy.NONE, 1000, 20, count, lambda image: 1000))
        self.model.usage = Tokens()
        self.successResultOf(self.respond(agent))
        self.assertEqual((agent.usage().token_tracking_available, counted), (False, []))

    def test_cancelling_while_the_model_thinks_leaves_a_conversation_that_goes_on(self) -> None:
        agent = self.make(Deferred(), [TextBlock("Here.")])
        responding = self.respond(agent)
        responding.cancel()
        self.failureResultOf(responding)
        self.assertEqual(self.successResultOf(self.respond(agent, "again")).text, "Here.")
        self.assertEqual([message.role for message in self.model.requests[1].messages], ["user"])

    def test_cancelling_while_code_runs_gives_the_tool_use_a_result(self) -> None:
        agent = self.make([RUN], [TextBlock("Here.")])
        self.interpreter.waiting = Deferred()
        responding = self.respond(agent)
        responding.cancel()
        self.failureResultOf(responding)
        self.successResultOf(self.respond(agent, "again"))
        first = self.model.requests[1].messages[-1].content[0]
        self.assertEqual(first, ToolResult("t1", "cancelled by the person", True))

    def test_a_retry_is_reported(self) -> None:
        agent = self.make([TextBlock("x")])
        agent._model_event(Retrying(3.0, "overloaded"))
        self.assertEqual(self.seen(events.ModelRetry), [events.ModelRetry(delay=3.0, reason="overloaded")])

    def test_a_fallback_is_reported_and_the_answer_is_the_other_models(self) -> None:
        busy = Model(ModelError("overloaded", "too busy", retryable=True))
        agent = self.make([TextBlock("From the second.")], first=busy)
        self.assertEqual(self.successResultOf(self.respond(agent)).text, "From the second.")
        fell = events.ModelFellBack(failed="given (first-1)", model="given (second-1)", reason="too busy")
        self.assertEqual(self.seen(events.ModelFellBack), [fell])
        words = describe(fell)
        assert words is not None
        self.assertEqual(words.text, "given (first-1) gave no answer (too busy); given (second-1) is asked instead")
        self.assertEqual(agent.model, "second-1")

    def test_lost_variables_are_told_to_the_model(self) -> None:
        agent = self.make([RUN], [TextBlock("x")])
        self.interpreter.result = RunResult("", None, "MemoryError: too much", True)
        self.successResultOf(self.respond(agent))
        (result,) = self.model.requests[1].messages[-1].content
        assert isinstance(result, ToolResult)
        self.assertTrue(result.is_error)
        self.assertIn("variables are lost", result.content)

    def test_shown_picture_reaches_the_model_and_only_its_digest_the_records(self) -> None:
        agent = self.make([RUN], [TextBlock("A window.")])
        shot = ImageBlock("image/png", b"CANARY", 10, 20)
        self.interpreter.result = RunResult("1\n", None, None, False, shown=(shot,))
        self.successResultOf(self.respond(agent))
        (result,) = self.model.requests[1].messages[-1].content
        self.assertEqual(result, ToolResult("t1", "1\n(pictures shown: 1)", False, (shot,)))
        [record] = [record for record in self.records if isinstance(record, Results)]
        self.assertEqual(record.results[0].images, (description(shot),))
        written = b"".join(map(encode, self.records)).decode()
        self.assertNotIn("CANARY", written + repr(self.events))
        self.assertNotIn(base64.b64encode(shot.data).decode(), written)

    def test_pictures_are_left_out_for_a_model_that_refuses_them(self) -> None:
        refusal = ModelError("invalid-request", "this model does not take images")
        agent = self.make([RUN], refusal, [TextBlock("I cannot see it.")])
        shown = (ImageBlock("image/png", b"1", 1, 1),)
        self.interpreter.result = RunResult("1\n", None, None, False, shown=shown)
        self.assertEqual(self.successResultOf(self.respond(agent)).text, "I cannot see it.")
        (before,), (after,) = (self.model.requests[number].messages[-1].content for number in (1, 2))
        assert isinstance(before, ToolResult) and isinstance(after, ToolResult)
        self.assertEqual((before.images, after.images), (shown, ()))
        self.assertIn("1 of the pictures shown here were left out", after.content)
        [told] = self.seen(events.Notice)
        self.assertIn("left out from now on", told.text)

    def test_request_without_pictures_is_not_sent_again(self) -> None:
        agent = self.make(ModelError("invalid-request", "no"), [TextBlock("x")])
        self.failureResultOf(self.respond(agent), SessionError)
        self.assertEqual(len(self.model.requests), 1)

    def test_what_is_cut_is_reported(self) -> None:
        agent = self.make([RUN], [RUN], [TextBlock("x")])
        self.interpreter.result = RunResult("é\n", "b", None, False, left_out=100)
        self.successResultOf(self.respond(agent))
        self.assertEqual(self.seen(events.ResultTruncated), [events.ResultTruncated(size=104, kept=4)] * 2)
        agent = self.make([RUN], [TextBlock("x")])
        self.successResultOf(self.respond(agent))
        self.assertEqual(self.seen(events.ResultTruncated), [])

    def test_stopping_closes_the_interpreter(self) -> None:
        agent = self.make()
        self.successResultOf(Deferred.fromCoroutine(agent.stop()))
        self.assertTrue(self.interpreter.closed)


class RecordTests(AgentCase):
    def kinds(self) -> list[type[AnyRecord]]:
        return [type(record) for record in self.records]

    def test_all_is_recorded_in_its_order_and_a_call_before_it_is_made(self) -> None:
        agent = self.make([TextBlock("Look."), RUN], [TextBlock("One.")])
        self.interpreter.arguments = {"path": "a.txt", "content": "x" * 2000}
        responding = self.respond(agent)
        self.assertIsInstance(self.records[self.seen_records - 1], Called)
        self.calling.callback(ToolReply(None, "no such directory"))
        self.successResultOf(responding)
        self.assertEqual(self.kinds(), [Started, Said, Replied, Called, CallEnded, Results, Replied, Ended])
        called, ended = self.records[3:5]
        assert isinstance(called, Called) and isinstance(ended, CallEnded)
        self.assertEqual((called.server, called.tool, called.audit), ("filesystem", "write_file", 7))
        self.assertTrue(called.arguments["content"].endswith("[1000 more characters]"))
        self.assertEqual((ended.outcome, ended.error), ("failed", "no such directory"))

    def test_a_failed_turn_is_no_answer(self) -> None:
        agent = self.make(ModelError("overloaded", "too busy"), [TextBlock("Back.")])
        self.failureResultOf(self.respond(agent, "Hello"), SessionError)
        self.assertEqual(self.records[-1], Ended(error="too busy"))
        self.successResultOf(self.respond(agent, "Again"))
        (message,) = self.model.requests[1].messages
        self.assertEqual(message.role, "user")
        said = [block.text for block in message.content if isinstance(block, TextBlock)]
        self.assertEqual(said, ["Hello", "[IronCurtain: this message got no answer: too busy]", "Again"])

    def test_an_internal_error_ends_the_turn(self) -> None:
        agent = self.make(RuntimeError("a bug"))
        self.failureResultOf(self.respond(agent), RuntimeError)
        self.assertIsInstance(self.records[-1], Ended)

    def test_a_call_that_is_cancelled_has_an_end(self) -> None:
        agent = self.make([RUN])
        self.interpreter.arguments = {}
        responding = self.respond(agent)
        responding.cancel()
        self.failureResultOf(responding)
        self.assertEqual(self.records[-2], CallEnded(number=1, outcome="withdrawn"))
        self.assertEqual(self.records[-1], Ended(error="cancelled by the person"))


def words(request: ModelRequest) -> str:
    """:returns: all texts of a request."""
    return "\n".join(block.text for m in request.messages for block in m.content if isinstance(block, TextBlock))


class CompactionTests(AgentCase):
    def fill(self, strategy: Strategy, *replies: Any) -> BuiltinAgent:
        """:returns: an agent with little room, after two long messages."""
        window = Window(strategy, 3600, 2, len, lambda image: 1000)
        agent = self.make([TextBlock("A" * 400)], [TextBlock("B" * 400)], *replies, window=window)
        self.window.always()  # of the prompt nothing is counted
        self.model.usage = Tokens()  # the provider reports none
        for letter in "ab":
            self.successResultOf(self.respond(agent, letter * 400))
        return agent

    def test_a_long_conversation_is_shortened_before_it_is_sent(self) -> None:
        for strategy in (Strategy.TRUNCATE, Strategy.SLIDING):
            agent = self.fill(strategy, [TextBlock("C")])
            self.successResultOf(self.respond(agent, "c" * 2000))
            (event,) = self.seen(events.MessagesCompacted)
            self.assertEqual((event.strategy, event.turns), (strategy, 2))
            self.assertLess(event.after, event.before)
            sent = words(self.model.requests[-1])
            self.assertIn("c" * 2000, sent)
            self.assertNotIn("a" * 400, sent)
            self.assertIn("oldest messages of this conversation", sent)

    def test_a_summary_replaces_what_goes(self) -> None:
        agent = self.fill(Strategy.SUMMARISE, [TextBlock("They spoke of a.")], [TextBlock("C")])
        self.successResultOf(self.respond(agent, "c" * 2000))
        asked, sent = map(words, self.model.requests[-2:])
        self.assertIn("a" * 400, asked)
        self.assertNotIn("c" * 2000, asked)
        self.assertIn("They spoke of a.", sent)
        self.assertNotIn("a" * 400, sent)
        (shorter,) = [record for record in self.records if isinstance(record, Shorter)]
        self.assertEqual(shorter.summary, "They spoke of a.")
        self.assertNotIn("They spoke of a.", [event.text for event in self.seen(events.AgentText)])

    def test_a_summary_that_fails_fails_the_message_and_loses_nothing(self) -> None:
        agent = self.fill(
            Strategy.SUMMARISE, ModelError("overloaded", "too busy"), [TextBlock("Sum.")], [TextBlock("C")]
        )
        self.failureResultOf(self.respond(agent, "c" * 2000), SessionError)
        self.successResultOf(self.respond(agent, "now"))
        self.assertIn("a" * 400, words(self.model.requests[-2]))

    def test_a_request_that_the_provider_refuses_as_too_long_is_tried_once_more(self) -> None:
        full = ModelError("context-overflow", "prompt is too long")
        agent = self.fill(Strategy.TRUNCATE, full, [TextBlock("C")], full, full)
        self.assertEqual(self.successResultOf(self.respond(agent, "c")).text, "C")
        self.assertIn("new session", str(self.failureResultOf(self.respond(agent, "d"), SessionError).value))

    def test_by_default_all_is_sent_as_it_is(self) -> None:
        agent = self.fill(Strategy.NONE, [TextBlock("C")])
        self.successResultOf(self.respond(agent, "c" * 5000))
        self.assertIn("a" * 400, words(self.model.requests[-1]))
        self.assertEqual(self.seen(events.MessagesCompacted), [])
