"""What the stub knows of agents: how they name tools, and what they ask on the side, in the shapes of real requests."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.model_stub import agents, anthropic, google, naming, openai
from tests.model_stub.dialect import Asked, Dialect, Invalid
from tests.model_stub.replies import Answer, Block, CustomTool, McpCall, Raw, Text, Tool

CLAUDE = {
    "user-agent": "claude-cli/2.1.329 (external, sdk-cli)",
    "anthropic-beta": "mid-conversation-system-clear-at-1",
}
CODEX = {"user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.169.0)"}
OPENCODE = {"user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14"}
GEMINI = {"user-agent": "GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)"}
OURS = {"user-agent": "ironcurtain"}
KIND = "x-claude-code-request-class"

TITLE = "You are a title generator. You output ONLY a thread title."
COMPACT = [{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}]
ROUTES = {
    "type": "OBJECT",
    "properties": {"complexity_reasoning": {"type": "STRING"}, "complexity_score": {"type": "INTEGER"}},
}


def codex(kind: str, source: str = "user") -> dict[str, str]:
    return {**CODEX, "x-codex-turn-metadata": json.dumps({"request_kind": kind, "thread_source": source})}


def messages(*tools: str, headers: dict[str, str] = OURS, turns: Any = None, **fields: Any) -> Asked:
    declared = [{"name": name, "input_schema": {"type": "object"}} for name in tools]
    whole = {"model": "m", "max_tokens": 9, "messages": turns or [{"role": "user", "content": "Hi"}], "tools": declared}
    return anthropic.asked("/v1/messages", headers, json.dumps({**whole, **fields}).encode())


def function(name: str, kind: str = "function") -> dict[str, Any]:
    return {"type": kind, "name": name}


def namespace(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "tools": tools}


def responses(*tools: dict[str, Any], items: Any = "Hi", **fields: Any) -> Asked:
    return openai.asked(
        "/v1/responses", {}, json.dumps({"model": "m", "input": items, "tools": tools, **fields}).encode()
    )


def contents(*tools: str, turns: Any = None, method: str = "streamGenerateContent", **fields: Any) -> Asked:
    declared = [{"functionDeclarations": [{"name": name} for name in tools]}] if tools else []
    whole = {"contents": turns or [{"role": "user", "parts": [{"text": "Hi"}]}], "tools": declared, **fields}
    return google.asked(f"/v1beta/models/gemini-9:{method}", {}, json.dumps(whole).encode())


class NamingTests(SynchronousTestCase):
    CALL = McpCall("files__read_file", {"path": "x"}, pieces=1)

    def spoken(self, dialect: Dialect, asked: Asked, call: McpCall = CALL) -> Block:
        (content,) = dialect.spoken(Answer((call,)), asked).content
        return content

    def test_each_agent_has_its_own_words(self) -> None:
        claude = self.spoken(anthropic, messages("Bash", "mcp__ironcurtain__files__read_file"))
        self.assertEqual(claude, Tool("mcp__ironcurtain__files__read_file", {"path": "x"}, pieces=1))
        opencode = Tool("ironcurtain_files__read_file", {"path": "x"}, pieces=1)
        self.assertEqual(self.spoken(anthropic, messages("bash", opencode.name)), opencode)
        self.assertEqual(self.spoken(openai, responses(function("bash"), function(opencode.name))), opencode)
        self.assertEqual(self.spoken(google, contents("bash", opencode.name)), opencode)
        gemini = self.spoken(google, contents("glob", "mcp_ironcurtain_files__read_file"))
        self.assertEqual(gemini, Tool("mcp_ironcurtain_files__read_file", {"path": "x"}, pieces=1))

    def test_characters_that_an_agent_replaces_make_no_difference(self) -> None:
        call = McpCall("files__read.file", {}, "iron-curtain", pieces=1)
        spoken = self.spoken(openai, responses(function("iron_curtain_files__read_file")), call)
        self.assertEqual(spoken, Tool("iron_curtain_files__read_file", {}, pieces=1))

    def test_codex_has_a_namespace(self) -> None:
        asked = responses(function("exec_command"), namespace("mcp__ironcurtain", function("files__read_file")))
        wanted = Tool("files__read_file", {"path": "x"}, pieces=1, namespace="mcp__ironcurtain")
        self.assertEqual(self.spoken(openai, asked), wanted)

    def test_or_codex_writes_javascript(self) -> None:
        added = {"type": "additional_tools", "tools": [namespace("functions", function("exec", "custom"))]}
        asked = responses(items=[added, {"role": "user", "content": "Hi"}])
        self.assertEqual(asked.tools, ("functions.exec",))
        script = 'const result = await tools.mcp__ironcurtain__files__read_file({"path": "x"});\ntext(result);\n'
        self.assertEqual(self.spoken(openai, asked), CustomTool("exec", script, 1))

    def test_names_in_javascript_are_identifiers(self) -> None:
        self.assertIn("tools.mcp__a_b__c_d(", naming.script(McpCall("c.d", {}, "a-b")))

    def test_a_tool_that_claude_code_has_to_search_for_may_be_called_all_the_same(self) -> None:
        spoken = self.spoken(anthropic, messages("Bash", "ToolSearch"))
        self.assertEqual(spoken, Tool("mcp__ironcurtain__files__read_file", {"path": "x"}, pieces=1))

    def test_a_tool_that_is_not_there_is_an_error_that_says_which_are(self) -> None:
        asks: tuple[tuple[Dialect, Asked], ...] = (
            (anthropic, messages("Bash", "mcp__other__files__read_file")),
            (openai, responses(function("bash"))),
            (google, contents("bash")),
        )
        for dialect, asked in asks:
            with self.assertRaises(Invalid) as caught:
                self.spoken(dialect, asked)
            self.assertIn("no tool of ironcurtain is files__read_file", str(caught.exception))
            self.assertIn(asked.tools[0], str(caught.exception))

    def test_only_one_api_has_tools_that_take_any_text(self) -> None:
        asks: tuple[tuple[Dialect, Asked], ...] = ((anthropic, messages("t")), (google, contents("t")))
        for dialect, asked in asks:
            with self.assertRaisesRegex(Invalid, "any text"):
                dialect.spoken(Answer((CustomTool("exec", "1"),)), asked)


class AskedTests(SynchronousTestCase):
    def test_messages(self) -> None:
        turns = [
            {"role": "user", "content": [{"type": "text", "text": "<reminder>"}, {"type": "text", "text": "Look"}]},
            {"role": "system", "content": [{"type": "text", "text": "Aside."}]},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "So."}, {"type": "tool_use", "id": "1", "name": "t", "input": {}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "seen"}]},
        ]
        asked = messages("t", headers=CLAUDE, turns=turns, system="Be good.", stream=True)
        self.assertEqual((asked.tools, asked.results, asked.said), (("t",), ("seen",), "Look"))
        self.assertEqual((asked.system, asked.stream, asked.counting), ("Be good.\nAside.", True, False))

    def test_messages_of_the_system_need_a_beta_and_a_place(self) -> None:
        hi, aside = {"role": "user", "content": "Hi"}, {"role": "system", "content": "Aside."}
        for headers, turns in ((OURS, [hi, aside]), (CLAUDE, [aside, hi])):
            with self.assertRaisesRegex(Invalid, "role"):
                messages(headers=headers, turns=turns)
        with self.assertRaisesRegex(Invalid, "diagnostics"):
            messages(diagnostics={})
        messages(headers={"anthropic-beta": "a, cache-diagnosis-2026-04-07"}, diagnostics={})

    def test_responses(self) -> None:
        items = [
            {"role": "developer", "content": "Be good."},
            {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
            *({"type": "function_call", "call_id": id, "name": "t", "arguments": "{}"} for id in "ab"),
            *({"type": "function_call_output", "call_id": id, "output": id * 3} for id in "ab"),
        ]
        asked = responses(function("t"), {"type": "web_search"}, items=items, instructions="You are good.")
        self.assertEqual((asked.tools, asked.results, asked.said), (("t", "web_search"), ("aaa", "bbb"), "Look"))
        self.assertEqual((asked.system, asked.stream), ("You are good.\nBe good.", False))
        self.assertEqual(responses(items=[*items, items[1]]).results, ())

    def test_contents(self) -> None:
        turns = [
            {"role": "user", "parts": [{"text": "<context>"}, {"text": "Look"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "t", "args": {}}}] * 3},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "t", "response": response}}
                    for response in ({"output": "a"}, {"name": "t", "content": "b"}, {"c": 1})
                ],
            },
        ]
        asked = contents("t", turns=turns, systemInstruction={"parts": [{"text": "Be good."}]})
        self.assertEqual((asked.tools, asked.results, asked.said), (("t",), ("a", "b", '{"c": 1}'), "Look"))
        self.assertEqual((asked.system, asked.stream, asked.model), ("Be good.", True, "gemini-9"))
        self.assertFalse(contents(method="generateContent").stream)
        self.assertTrue(contents(method="countTokens").counting)


class SideTests(SynchronousTestCase):
    def test_turns(self) -> None:
        exec_ = function("exec", "custom")
        wanted: Any = {"format": {"type": "json_schema", "schema": {"properties": {"done": {"type": "boolean"}}}}}
        for headers, asked in (
            (OURS, messages()),
            (OURS, messages(system=TITLE)),
            (OURS, messages("t")),
            (OURS, contents(generationConfig={"responseSchema": ROUTES})),
            (CLAUDE | {KIND: "main"}, messages("Bash")),
            (CLAUDE | {KIND: "main"}, messages()),
            (CLAUDE | {KIND: "subagent"}, messages("Bash")),
            (CLAUDE, messages("Bash", system="Give each file a title.")),
            (codex("turn"), responses(exec_)),
            (codex("turn"), responses(exec_, text=wanted)),
            (codex("turn", "subagent"), responses(exec_)),
            (CODEX, responses(exec_)),
            (OPENCODE, messages("bash")),
            (OPENCODE, responses(function("bash"))),
            (GEMINI, contents("glob")),
            (GEMINI, contents("glob", generationConfig={"responseJsonSchema": ROUTES})),
        ):
            self.assertIsNone(agents.side(asked, headers), (headers, asked))

    def test_what_is_asked_on_the_side(self) -> None:
        wanted: Any = {"format": {"type": "json_schema", "schema": {"properties": {"title": {"type": "string"}}}}}
        for headers, asked, purpose in (
            (OPENCODE, messages(system=TITLE), "title"),
            (OPENCODE, responses(items=[{"role": "developer", "content": TITLE}]), "title"),
            (OPENCODE, contents(systemInstruction={"parts": [{"text": TITLE}]}), "title"),
            (OPENCODE, messages(system="Summarize."), "summary"),
            (CLAUDE | {KIND: "auxiliary"}, messages("Bash"), "auxiliary"),
            (CLAUDE | {KIND: "auxiliary"}, messages(output_config=wanted), "title"),
            (CLAUDE | {KIND: "compaction"}, messages("Bash"), "compaction"),
            (CLAUDE, messages(), "aside"),
            (codex("prewarm"), responses(function("t")), "prewarm"),
            (codex("turn", "thread_title"), responses(function("t"), text=wanted), "title"),
            (codex("compaction"), responses(function("t"), items=COMPACT), "compaction"),
            (GEMINI, contents(method="generateContent", generationConfig={"responseJsonSchema": ROUTES}), "routing"),
            (GEMINI, contents(), "aside"),
        ):
            side = agents.side(asked, headers)
            assert side is not None, (headers, asked)
            self.assertEqual(side[0], purpose)

    def test_an_answer_fits_the_schema_that_is_asked_for(self) -> None:
        side = agents.side(contents(generationConfig={"responseSchema": ROUTES}), GEMINI)
        assert side is not None
        (text,) = side[1].content
        assert isinstance(text, Text)
        self.assertEqual(json.loads(text.chunks[0]), {"complexity_reasoning": "A task", "complexity_score": 1})

    def test_instances(self) -> None:
        for schema, value in (
            ({"type": "string"}, "A task"),
            ({"type": ["null", "string"]}, None),
            ({"type": "integer", "minimum": 4}, 4),
            ({"type": "NUMBER"}, 0),
            ({"type": "boolean"}, False),
            ({"enum": ["user", "model"]}, "user"),
            ({"const": 7}, 7),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
            ({"type": "array", "items": {"type": "integer"}}, []),
            ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
            ({"properties": {"a": {"type": "object"}}}, {"a": {}}),
        ):
            self.assertEqual(agents.instance(schema), value)

    def test_what_codex_is_to_remember_has_a_shape_of_its_own(self) -> None:
        side = agents.side(responses(items=COMPACT), codex("compaction"))
        assert side is not None
        (item,) = side[1].content
        assert isinstance(item, Raw)
        self.assertEqual(item.block["type"], "compaction")

    def test_codex_waits_for_a_script_that_goes_on(self) -> None:
        items = [
            {"role": "user", "content": "Hi"},
            {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "1"},
            {
                "type": "custom_tool_call_output",
                "call_id": "c",
                "output": [{"type": "input_text", "text": "Script running with cell ID 12\nWall time 31.0 seconds\n"}],
            },
        ]
        side = agents.side(responses(function("exec", "custom"), items=items), codex("turn"))
        self.assertEqual(side, ("wait", Answer((Tool("wait", {"cell_id": "12"}),))))
