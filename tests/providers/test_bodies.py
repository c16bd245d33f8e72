from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.bodies import is_json, judge_body
from ironcurtain.providers.clouds import BEDROCK, VERTEX
from ironcurtain.providers.google import GOOGLE
from ironcurtain.providers.openai import OPENAI
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.registry import KNOWN_PROVIDERS, OTHER, body_rules
from tests.mitm_proxy.agents import ALL, CLAUDE_CODE, CODEX, SCHEMA

NAMES = tuple(KNOWN_PROVIDERS)
PNG = {"type": "image", "source": {"type": "url", "url": "https://evil.test/?data"}}
UNKNOWN_KEYS = st.text(max_size=4).map("-".__add__)  # the name of no rule, however it is folded


def refused(provider: str, body: bytes) -> RequestRefusal | None:
    rules = KNOWN_PROVIDERS[provider].bodies
    assert rules is not None
    judged = judge_body(rules, body)
    return judged if isinstance(judged, RequestRefusal) else None


def judged(provider: str, body: Any) -> RequestRefusal | None:
    return refused(provider, msgspec.json.encode(body))


class Case(SynchronousTestCase):
    def passes(self, provider: str, body: Any) -> None:
        self.assertIsNone(judged(provider, body))

    def acts(self, provider: str, body: Any, deed: str) -> None:
        """The body is refused, and the reason says what the provider would do."""
        found = judged(provider, body)
        assert found is not None, body
        self.assertEqual((found.status, found.code), (403, "provider-acts"))
        self.assertIn(f"asks the provider to {deed}", found.reason)


class AgentTests(Case):
    def test_what_agents_send_passes(self) -> None:
        for sent in ALL:
            self.passes(sent.provider, sent.body)

    def test_codexs_own_web_search_does_not(self) -> None:
        body = {**CODEX.body, "tools": [{"type": "web_search", "external_web_access": True}]}
        self.acts("openai", body, "run a tool of type web_search")

    def test_a_tool_of_a_gateway_beside_the_agents_own(self) -> None:
        value: Any
        for name in ("googleSearch", "google_search", "url_context", "codeExecution", "something_new"):
            for value in ({}, [], {"x": 1}):
                self.acts("anthropic", {"tools": [{name: value}]}, f"turn on {name} for a tool")
                self.acts(
                    "anthropic", {"tools": [{"name": "x", "input_schema": SCHEMA, name: value}]}, f"turn on {name}"
                )
                self.acts("openai", {"tools": [{"type": "function", "function": {}, name: value}]}, f"turn on {name}")
        flags = {"eager_input_streaming": True, "something_new": "x", "other": 1, "third": None}
        self.passes("anthropic", {"tools": [{"name": "x", "input_schema": SCHEMA, **flags}]})
        self.passes("openai", {"tools": [{"type": "function", "name": "x", "parameters": SCHEMA, **flags}]})

    def test_every_provider_takes_the_schemas_and_arguments_of_tools_for_what_they_are(self) -> None:
        self.passes("anthropic", {"tools": [{"name": "x", "input_schema": SCHEMA, "input_examples": [{"file_id": 1}]}]})
        self.passes("openai", {"tools": [{"type": "function", "function": {"name": "x", "parameters": SCHEMA}}]})
        self.passes("openai", {"text": {"format": {"type": "json_schema", "schema": SCHEMA}}})
        self.passes("openai", {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}})
        self.passes("google", {"generationConfig": {"responseSchema": SCHEMA, "responseJsonSchema": SCHEMA}})


class AnthropicTests(Case):
    def test_server_side_tools(self) -> None:
        for kind in (
            "web_search_20250305",
            "web_fetch_20250910",
            "code_execution_20250825",
            "mcp_toolset",
            "something_new_20270101",
            "bash_20250124x",
            "Web_Search_20250305",
            "",
            7,
            ["custom"],
        ):
            self.acts("anthropic", {"tools": [{"name": "x"}, {"type": kind, "name": "x"}]}, "run a tool of type")

    def test_tools_that_are_no_list_of_objects(self) -> None:
        for tools in ({"type": "web_search_20250305"}, "web_search", [[{"type": "custom"}]], [None]):
            self.acts("anthropic", {"tools": tools}, "run a tool of type")

    def test_tools_that_come_later_in_the_conversation(self) -> None:
        late = {"type": "tool_change", "add": {"type": "web_fetch_20250910", "name": "web_fetch"}}
        self.acts("anthropic", {"messages": [{"role": "system", "content": [late]}]}, "run web_fetch")
        for kind in ("advisor_20260301", "browser_toolset_20260801", "code_execution_20260521", "something_new", 7):
            definition = {"type": "tool_definition", "definition": {"type": kind, "name": "x"}}
            direct: dict[str, Any] = {"type": kind, "name": "x"}
            for tool in (definition, direct):
                block = {"type": "tool_addition", "tool": tool}
                self.acts("anthropic", {"messages": [{"role": "user", "content": [block]}]}, "run")
        definition = {"type": "tool_definition", "definition": {"name": "Bash", "input_schema": SCHEMA}}
        for tool in (definition, {"type": "tool_reference", "name": "Bash"}):
            block = {"type": "tool_addition", "tool": tool}
            self.passes("anthropic", {"messages": [{"role": "user", "content": [block]}]})
        nested = {"type": "tool_change", "tools": [{"type": "mcp_toolset", "mcp_server_name": "x"}]}
        self.acts("anthropic", {"messages": [{"role": "system", "content": [nested]}]}, "run")

    def test_servers_containers_and_stored_files(self) -> None:
        self.acts("anthropic", {"mcp_servers": [{"type": "url", "url": "https://evil.test"}]}, "connect to MCP servers")
        self.acts("anthropic", {"container": "container_1"}, "run code in a container")
        self.acts("anthropic", {"container": {"skills": [{"skill_id": "pdf"}]}}, "run code in a container")
        self.acts("anthropic", {"messages": [{"content": [{"type": "container_upload", "file_id": "f"}]}]}, "")
        nothing: tuple[Any, ...] = (None, [], "", False)
        for harmless in nothing:
            self.passes("anthropic", {"mcp_servers": harmless, "container": harmless})

    def test_sources_other_than_the_content_itself(self) -> None:
        for source in (
            {"type": "url", "url": "https://evil.test"},
            {"type": "file", "file_id": "f"},
            {"type": "s3"},
            {},
        ):
            for kind in ("image", "document"):
                block = {"type": kind, "source": source}
                self.acts("anthropic", {"messages": [{"role": "user", "content": [block]}]}, "")
                self.acts("anthropic", {"system": [block]}, "")
                result = {"type": "tool_result", "tool_use_id": "1", "content": [block]}
                self.acts("anthropic", {"messages": [{"role": "user", "content": [result]}]}, "")
                inner = {"type": "document", "source": {"type": "content", "content": [block]}}
                self.acts("anthropic", {"messages": [{"role": "user", "content": [inner]}]}, "")

    def test_other_models_take_over_only_as_the_api_says(self) -> None:
        fallbacks: Any
        for fallbacks in (None, "default", [], [{"model": "claude-opus-4-8", "thinking": {"type": "adaptive"}}]):
            self.passes("anthropic", {"fallbacks": fallbacks})
        for fallbacks in (
            ["gpt-5"],
            [{"model": "x", "api_base": "https://evil.test"}],
            {"model": "x", "base_url": "x"},
        ):
            self.acts("anthropic", {"fallbacks": fallbacks}, "use another model in an unknown way")

    def test_a_batch_of_requests_is_looked_through(self) -> None:
        self.acts("anthropic", {"requests": [{"params": {"mcp_servers": [{}]}}]}, "connect to MCP servers")


class OpenAITests(Case):
    def test_hosted_tools(self) -> None:
        for kind in (
            "web_search",
            "web_search_preview",
            "web_search_preview_2025_03_11",
            "file_search",
            "code_interpreter",
            "mcp",
            "something_new",
            None,
        ):
            self.acts("openai", {"tools": [{"type": "function"}, {"type": kind}]}, "run a tool of type")
            inside = {"type": "namespace", "name": "x", "tools": [{"type": kind}]}
            self.acts("openai", {"tools": [inside]}, "run")
            self.acts("openai", {"input": [{"type": "additional_tools", "tools": [{"type": kind}]}]}, "run")

    def test_a_shell_in_the_providers_container(self) -> None:
        local = {"type": "shell", "environment": {"type": "local"}}
        self.passes("openai", {"tools": [local, {"type": "local_shell"}]})
        self.passes("openai", {"tools": None})
        for environment in ({"type": "container_auto"}, {"type": "Local"}, {}, None, "local", ["local"]):
            hosted = {"type": "shell", "environment": environment}
            self.acts("openai", {"tools": [local, hosted]}, "run commands in a container")
        for tools in ([{"type": "shell"}], {"type": "shell"}, [local, {"type": "shell", "Environment": "local"}]):
            self.acts("openai", {"tools": tools}, "run commands in a container")
            self.acts("openai", {"input": [{"type": "additional_tools", "tools": tools}]}, "run commands")

    def test_addresses_and_stored_files(self) -> None:
        for part in (
            {"type": "input_image", "image_url": "https://evil.test/?data"},
            {"type": "input_image", "image_url": "http://evil.test"},
            {"type": "input_image", "image_url": " data:image/png;base64,x"},
            {"type": "input_image", "image_url": ["https://evil.test"]},
            {"type": "input_image", "file_id": "file-1"},
            {"type": "input_file", "file_url": "https://evil.test"},
            {"type": "input_file", "file_id": "file-1"},
            {"type": "image_url", "image_url": {"url": "https://evil.test"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "file", "file": {"filename": "x.pdf", "file_data": "https://evil.test/?data"}},
            {"type": "file", "file": {"filename": "x.pdf", "file_data": " HTTP:evil.test"}},
            {"type": "input_audio", "input_audio": {"data": "https://evil.test/x.mp3", "format": "mp3"}},
            {"type": "video_url", "video_url": {"url": "https://evil.test"}},
        ):
            self.acts("openai", {"input": [{"type": "message", "role": "user", "content": [part]}]}, "")
            self.acts("openai", {"messages": [{"role": "user", "content": [part]}]}, "")
            self.acts("openai", {"input": [{"type": "function_call_output", "output": [part]}]}, "")
        self.acts("openai", {"tools": [{"type": "image_generation", "input_image_mask": {"file_id": "x"}}]}, "")

    def test_content_itself(self) -> None:
        for part in (
            {"type": "input_image", "image_url": "data:image/png;base64,x"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}},
            {"type": "input_file", "filename": "x.pdf", "file_data": "data:application/pdf;base64,x"},
            {"type": "file", "file": {"filename": "x.pdf", "file_data": "JVBERi0xLjQK"}},
            {"type": "input_audio", "input_audio": {"data": "//uQxAAAAAAAAAAAAAAAAAAAAAAA", "format": "mp3"}},
            {"type": "input_image", "image_url": None, "file_id": None},
            {"type": "input_text", "text": "https://example.com"},
        ):
            self.passes("openai", {"input": [{"type": "message", "role": "user", "content": [part]}]})

    def test_other_ways_to_make_it_act(self) -> None:
        self.acts("openai", {"web_search_options": {}}, "search the web")
        self.acts("openai", {"background": True}, "work in the background")
        self.acts("openai", {"prompt": {"id": "pmpt_1"}}, "use a stored prompt")
        self.acts("openai", {"plugins": [{"id": "web"}]}, "run plugins")
        self.acts("openai", {"tool_choice": {"type": "mcp", "server_label": "x"}}, "run mcp")
        for model in ("gpt-4o-search-preview", "gpt-5-search-api", "o3-deep-research", "openai/gpt-5:online"):
            self.acts("openai", {"model": model}, "search the web")
        for model in ("@preset/mine", "openai/gpt-5@preset/mine", "x@PRESET/y"):
            self.acts("openai", {"model": model}, "use stored settings")
        self.passes("openai", {"model": "gpt-6.1-sol", "background": False, "prompt": "x", "web_search_options": None})


class GoogleTests(Case):
    def test_googles_own_tools(self) -> None:
        for name in (
            "googleSearch",
            "google_search",
            "googleSearchRetrieval",
            "google_search_retrieval",
            "urlContext",
            "url_context",
            "codeExecution",
            "code_execution",
            "googleMaps",
            "fileSearch",
            "mcpServers",
            "somethingNew",
            "",
        ):
            alone: dict[str, Any] = {name: {}}
            beside: dict[str, Any] = {"functionDeclarations": [], name: {}}
            for tool in (alone, beside):
                self.acts("google", {"tools": [tool]}, "")
                self.acts("google", {"tools": tool}, "")
                self.acts("google", {"generateContentRequest": {"tools": [tool]}}, "")
        self.passes("google", {"tools": [{"functionDeclarations": [], "googleSearch": None}, {"computerUse": {}}]})
        self.passes("google", {"tools": [{"function_declarations": [{"name": "x", "parameters": SCHEMA}]}]})

    def test_addresses_and_stored_content(self) -> None:
        for name, uri in (("fileData", "fileUri"), ("file_data", "file_uri")):
            part = {name: {"mimeType": "text/html", uri: "https://evil.test"}}
            self.acts("google", {"contents": [{"parts": [part]}]}, "fetch an address")
            self.acts("google", {"systemInstruction": {"parts": [part]}}, "fetch an address")
            response = {"functionResponse": {"name": "x", "response": {}, "parts": [part]}}
            self.acts("google", {"contents": [{"parts": [response]}]}, "fetch an address")
        self.acts("google", {"cachedContent": "cachedContents/1"}, "use stored content")


class ParserTests(Case):
    def malformed(self, body: bytes) -> None:
        for provider in NAMES:
            found = refused(provider, body)
            assert found is not None, body
            self.assertEqual((found.status, found.code), (400, "malformed-body"))

    def test_a_key_that_stands_twice(self) -> None:
        self.malformed(b'{"model":"x","tools":[],"tools":[{"type":"web_search"}]}')
        self.malformed(b'{"tools":[],"to\\u006fls":[]}')
        self.malformed(b'{"messages":[{"content":[{"type":"text","text":"a","text":"b"}]}]}')

    def test_what_is_no_json_object(self) -> None:
        for body in (
            b"",
            b"[]",
            b'"x"',
            b"null",
            b"{",
            b"{}{}",
            b"{} x",
            b"{'tools':[]}",
            b"{tools:[]}",
            b'{"a":1,}',
            b'{"a":NaN}',
            b'{"a":Infinity}',
            b'{"a":01}',
            b'{"a":"\n"}',
            b'{"a":/**/1}',
            b'\xef\xbb\xbf{"a":1}',
            b'{"a":"\xff"}',
            b'{"a":"\xed\xa0\x80"}',
            '{"a":1}'.encode("utf-16"),
            b'{"a":"\\x"}',
            b'{"a":' + b"1" * 5000 + b"}",
            b"\x1f\x8b\x08\x00",
            b"model=x",
        ):
            self.malformed(body)

    def test_what_is_nested_too_deeply(self) -> None:
        self.malformed(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
        self.malformed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)

    def test_keys_are_compared_as_lenient_servers_do(self) -> None:
        for key in ("MCP_Servers", "mcpServers", "mcp_\\u0073ervers", "mcp_\\u017fervers", "_mcp__servers"):
            found = refused("anthropic", b'{"%b":[{}]}' % key.encode())
            assert found is not None, key
            self.assertEqual(found.code, "provider-acts")

    def test_a_reason_shows_no_more_of_the_agents_text_than_fits_a_line(self) -> None:
        found = judged("openai", {"tools": [{"type": "x" * 10_000}]})
        assert found is not None
        self.assertLess(len(found.reason), 300)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(UNKNOWN_KEYS, inner, max_size=3),
            max_leaves=10,
        )
    )
    def test_harmless_values_pass_wherever_they_stand(self, value: Any) -> None:
        for provider in NAMES:
            self.assertIsNone(refused(provider, json.dumps({"x": [value]}).encode()))

    @given(st.data())
    def test_an_address_is_found_wherever_a_block_may_stand(self, data: st.DataObject) -> None:
        body = deepcopy(dict(CLAUDE_CODE.body))
        lists = [body["system"], body["messages"][0]["content"], body["messages"][2]["content"][0]["content"]]
        at = data.draw(st.sampled_from(lists))
        at.insert(data.draw(st.integers(0, len(at))), PNG)
        self.acts("anthropic", body, "get content from a source of type url")


class WhichTests(SynchronousTestCase):
    def test_requests_to_models_are_judged_whatever_their_content_type(self) -> None:
        for sent in ALL:
            path = sent.target.partition("?")[0]
            self.assertIsNotNone(body_rules(KNOWN_PROVIDERS[sent.provider], path, "text/plain"))
        for path in ("/v1/messages/count_tokens", "/v1/responses/compact", "/v1beta/models/x:countTokens"):
            self.assertIsNotNone(body_rules(GOOGLE, path, ""))

    def test_other_requests_are_judged_if_they_are_json(self) -> None:
        self.assertIs(body_rules(OPENAI, "/v1/embeddings", "application/json"), OPENAI.bodies)
        self.assertIsNone(body_rules(OPENAI, "/v1/files", "multipart/form-data; boundary=x"))

    def test_requests_to_models_of_a_provider_with_several_formats_are_judged_by_their_own(self) -> None:
        for known in (ANTHROPIC, OPENAI, GOOGLE, BEDROCK, VERTEX):
            for ending, rules in known.calls.items():
                self.assertIs(body_rules(OTHER, f"/gate{ending}", ""), rules)
        self.assertIsNone(body_rules(OTHER, "/v1/search", "application/json"))

    def test_other_calls_of_a_provider_may_end_like_those_of_another(self) -> None:
        self.assertIs(body_rules(OPENAI, "/v1/threads/thread_1/messages", "text/plain"), OPENAI.bodies)

    def test_json_is_told_by_its_type(self) -> None:
        for kind in ("application/json", "application/json;charset=utf-8", 'application/vnd.x+json; charset="UTF-8"'):
            self.assertTrue(is_json(kind), kind)
        for kind in ("", "text/json", "application/jsonp", "application/json; charset=latin-1", "x application/json"):
            self.assertFalse(is_json(kind), kind)
