"""The stub's OpenAI and Google halves: their rules for requests, and the events of their answers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.model_stub import google, google_rules, openai, openai_rules
from tests.model_stub.dialect import Invalid
from tests.model_stub.replies import Answer, CustomTool, Raw, Text, Thinking, Tool

USAGE = {"input_tokens": 7, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3, "output_tokens": 5}
EVERYTHING = Answer(
    (Thinking(("I ", "see.")), Text(("Look", "ing.")), Tool("look", {"path": "a/b"}, pieces=4)), usage=USAGE
)


def said(event: bytes) -> Any:
    """:returns: what an event's data line holds."""
    (line,) = (line for line in event.decode().splitlines() if line.startswith("data: "))
    return json.loads(line.removeprefix("data: "))


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


class OpenAIEventTests(SynchronousTestCase):
    def test_the_events_of_a_text(self) -> None:
        kinds = [said(event)["type"] for event in openai.events(Answer((Text(("a", "b")),)), "m", 1)]
        self.assertEqual(
            kinds,
            [
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.content_part.added",
                "response.output_text.delta",
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.completed",
            ],
        )

    def test_each_names_itself_and_is_numbered(self) -> None:
        made = openai.events(EVERYTHING, "m", 1)
        self.assertEqual([said(event)["sequence_number"] for event in made], list(range(len(made))))
        for event in made:
            self.assertTrue(event.startswith(f"event: {said(event)['type']}\n".encode()), event)

    @given(st.integers(1, 9), st.dictionaries(st.text(), st.text()))
    def test_pieces_of_arguments_make_the_whole(self, pieces: int, given: dict[str, str]) -> None:
        made = [said(event) for event in openai.events(Answer((Tool("t", given, pieces=pieces),)), "m", 1)]
        deltas = [event["delta"] for event in made if event["type"] == "response.function_call_arguments.delta"]
        (done,) = (event for event in made if event["type"] == "response.function_call_arguments.done")
        self.assertEqual((json.loads("".join(deltas)), "".join(deltas)), (given, done["arguments"]))

    def test_the_last_event_holds_what_the_others_said(self) -> None:
        made = [said(event) for event in openai.events(EVERYTHING, "m", 1)]
        done = [event["item"] for event in made if event["type"] == "response.output_item.done"]
        last = made[-1]["response"]
        self.assertEqual((last["status"], last["output"]), ("completed", done))
        self.assertEqual([item["type"] for item in done], ["reasoning", "message", "function_call"])
        self.assertEqual(json.loads(openai.whole(EVERYTHING, "m", 1)), last)

    def test_usage_counts_what_came_from_a_cache_as_input(self) -> None:
        usage = said(openai.events(EVERYTHING, "m", 1)[-1])["response"]["usage"]
        self.assertEqual((usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]), (30, 5, 35))
        self.assertEqual(usage["input_tokens_details"], {"cached_tokens": 20, "cache_write_tokens": 3})

    def test_a_call_of_a_custom_tool_and_one_in_a_namespace(self) -> None:
        call, tool = CustomTool("exec", "text(1);", pieces=2), Tool("t", {}, namespace="mcp__x")
        made = [said(event) for event in openai.events(Answer((call, tool)), "m", 1)]
        kinds = [event["type"] for event in made if "custom" in event["type"]]
        self.assertEqual(kinds, [f"response.custom_tool_call_input.{kind}" for kind in ("delta", "delta", "done")])
        first, second = made[-1]["response"]["output"]
        self.assertEqual((first["type"], first["input"]), ("custom_tool_call", "text(1);"))
        self.assertEqual((second["type"], second["namespace"]), ("function_call", "mcp__x"))

    def test_an_answer_that_is_too_long_is_incomplete(self) -> None:
        last = said(openai.events(Answer((Text(("a",)),), stop_reason="max_tokens"), "m", 1)[-1])
        self.assertEqual(last["type"], "response.incomplete")
        self.assertEqual(last["response"]["incomplete_details"], {"reason": "max_output_tokens"})

    def test_an_error(self) -> None:
        error = said(openai.error_event(Answer(error=("overloaded_error", "busy"))))
        self.assertEqual(error["type"], "response.failed")
        self.assertEqual(error["response"]["error"], {"code": "server_is_overloaded", "message": "busy"})
        told = json.loads(openai.error_body(429, "slow"))["error"]
        self.assertEqual((told["message"], told["code"]), ("slow", "rate_limit_exceeded"))


class GoogleEventTests(SynchronousTestCase):
    def test_the_events(self) -> None:
        made = google.events(EVERYTHING, "m", 1)
        candidates = [said(event)["candidates"][0] for event in made]
        self.assertEqual([candidate.get("finishReason") for candidate in candidates], [None] * 5 + ["STOP"])
        parts = [part for candidate in candidates for part in candidate["content"]["parts"]]
        self.assertEqual("".join(part.get("text", "") for part in parts if "thought" not in part), "Looking.")
        self.assertEqual([part["text"] for part in parts if part.get("thought")], ["I ", "see."])
        (call,) = (part["functionCall"] for part in parts if "functionCall" in part)
        self.assertEqual(call, {"name": "look", "args": {"path": "a/b"}})
        self.assertTrue(all(event.startswith(b"data: ") and event.endswith(b"\r\n\r\n") for event in made))

    def test_usage(self) -> None:
        usage = said(google.events(EVERYTHING, "m", 1)[-1])["usageMetadata"]
        wanted = {
            "promptTokenCount": 30,
            "candidatesTokenCount": 5,
            "totalTokenCount": 35,
            "cachedContentTokenCount": 20,
        }
        self.assertEqual(usage, wanted)
        self.assertEqual(json.loads(google.whole(EVERYTHING, "m", 1))["usageMetadata"], wanted)

    def test_whole(self) -> None:
        (candidate,) = json.loads(google.whole(Answer((Text(("a", "b")), Raw({"text": "c"}))), "m", 1))["candidates"]
        self.assertEqual(candidate["content"], {"parts": [{"text": "ab"}, {"text": "c"}], "role": "model"})

    def test_an_error_says_when_to_try_again(self) -> None:
        error = json.loads(google.error_body(429, "slow", retry_after="3"))["error"]
        self.assertEqual((error["code"], error["status"]), (429, "RESOURCE_EXHAUSTED"))
        self.assertEqual(error["details"][0]["retryDelay"], "3s")
        self.assertEqual(said(google.error_event(Answer()))["error"]["status"], "UNAVAILABLE")


HI = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
CALL = {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}


def responses(*items: Any, **fields: Any) -> bytes:
    return body(**{"model": "m", "input": list(items) or [HI], **fields})


class OpenAIRuleTests(SynchronousTestCase):
    def test_a_good_conversation_passes(self) -> None:
        custom = {"type": "custom_tool_call", "call_id": "c2", "name": "exec", "input": "1"}
        output = {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "1"}]}
        answer = {"role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
        tools = [
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "t"}]},
            {"type": "web_search"},
        ]
        openai_rules.check_body(responses(HI, CALL, OUTPUT, custom, output, answer, HI, tools=tools, stream=True))
        openai_rules.check_body(responses(input="Hi"))

    def test_what_the_api_refuses_is_refused(self) -> None:
        for sent, named in (
            (b"{", "could not parse"),
            (b"[]", "expected an object"),
            (responses(colour="red"), "Unknown parameter: 'colour'"),
            (responses(model=None), "'model'"),
            (responses(input=[]), "'input'"),
            (responses({"type": "noise"}), "'noise' for 'input[0].type'"),
            (responses({"role": "robot", "content": ""}), "'robot'"),
            (responses({"role": "user", "content": None}), "'input[0].content'"),
            (responses({"role": "user", "content": [{"type": "output_text", "text": ""}]}), "input[0].content[0].type"),
            (responses(HI, CALL), "No tool output found for function call c1"),
            (responses(HI, OUTPUT), "No tool call found for function call output with call_id c1"),
            (responses(HI, {**CALL, "arguments": {}}, OUTPUT), "arguments"),
            (responses(HI, {**CALL, "call_id": ""}, OUTPUT), "call_id"),
            (responses(HI, CALL, {**OUTPUT, "output": None}), "output"),
            (responses(HI, {"type": "custom_tool_call", "call_id": "c", "name": "x"}), "input[1].input"),
            (responses(tools=[{"name": "t"}]), "tools[0].type"),
            (responses(tools=[{"type": "function", "name": "a b"}]), "tools[0].name"),
            (
                responses(tools=[{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]),
                "tools[0].tools[0]",
            ),
            (responses({"type": "additional_tools", "tools": [{"type": "custom"}]}), "tools[0].name"),
            (responses(tools=[{"type": "function", "name": "t", "parameters": {"type": "string"}}]), "'object'"),
            (responses(previous_response_id="resp_1"), "'resp_1' not found"),
        ):
            with self.assertRaises(Invalid, msg=named) as caught:
                openai_rules.check_body(sent)
            self.assertIn(named, str(caught.exception))
            self.assertEqual(caught.exception.status, 400)


def turn(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


ASK = turn("user", {"text": "Hi"})
USE = turn("model", {"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "x"})
RESPONSE = {"functionResponse": {"name": "t", "id": "1", "response": {"output": "ok"}}}


class GoogleRuleTests(SynchronousTestCase):
    def test_a_good_conversation_passes(self) -> None:
        tools = [{"functionDeclarations": [{"name": "t"}]}, {"googleSearch": {}}]
        answer = turn("model", {"text": "I think", "thought": True}, {"text": "so"})
        google_rules.check_body(body(contents=[ASK, USE, turn("user", RESPONSE), answer, ASK], tools=tools))

    def test_a_response_that_came_twice_counts_once(self) -> None:
        google_rules.check_body(body(contents=[ASK, USE, turn("user", RESPONSE, RESPONSE)]))

    def test_what_the_api_refuses_is_refused(self) -> None:
        other = {"functionResponse": {"name": "other", "response": {}}}
        for sent, named in (
            (b"{", "Invalid JSON"),
            (b"[]", "not an object"),
            (body(contents=[ASK], colour="red"), 'Unknown name "colour": Cannot find field'),
            (body(contents=[]), "contents is not specified"),
            (body(contents=["Hi"]), "Invalid value at 'contents[0]'"),
            (body(contents=[{**ASK, "name": "Ada"}]), "Unknown name \"name\" at 'contents[0]'"),
            (body(contents=[turn("assistant", {"text": "Hi"})]), "valid role"),
            (body(contents=[turn("user")]), "must not be empty"),
            (body(contents=[turn("user", {"tekst": "Hi"})]), "Unknown name \"tekst\" at 'contents[0].parts[0]'"),
            (body(contents=[turn("user", {"thought": True})]), "required oneof field 'data'"),
            (body(contents=[turn("user", {"text": "Hi", "inlineData": {}})]), "required oneof field 'data'"),
            (body(contents=[ASK, USE]), "followed by function response"),
            (body(contents=[ASK, USE, ASK]), "number of function response parts"),
            (body(contents=[ASK, turn("user", RESPONSE)]), "number of function response parts"),
            (body(contents=[ASK, USE, turn("user", other)]), "do not fit"),
            (body(contents=[ASK, turn("model", {"text": "So"}), USE, turn("user", RESPONSE)]), "immediately after"),
            (body(contents=[USE, turn("user", RESPONSE)]), "immediately after"),
            (body(contents=[ASK], tools=[{"functionDeclarations": [{"name": "1a"}]}]), "Invalid function name"),
        ):
            with self.assertRaises(Invalid, msg=named) as caught:
                google_rules.check_body(sent)
            self.assertIn(named, str(caught.exception))
            self.assertEqual(caught.exception.status, 400)
