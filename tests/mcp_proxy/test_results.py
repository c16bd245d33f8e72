"""Results that break the protocol."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.builtin_agent.replies import reply
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.results import mended
from tests.mcp_proxy.sdk_types import accept, objects, values

short = st.text(max_size=5)
contents = objects(dict.fromkeys(("uri", "text", "blob", "mimeType"), short))
block = objects(
    {
        "type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "weird"]),
        **dict.fromkeys(("text", "data", "mimeType", "uri", "name"), short),
        "resource": contents,
        "annotations": objects({"priority": st.floats(0, 2), "audience": st.just(["user"])}),
        "_meta": objects({}),
    }
)
message = objects(
    {"role": st.sampled_from(["user", "assistant", "system"]), "content": block | st.lists(block, max_size=2)}
)
RESULTS = {
    "tools/call": {
        "content": st.lists(block, max_size=3),
        "structuredContent": objects({"a": short}),
        "isError": st.booleans() | st.just("true"),
        "toolResult": values,
    },
    "resources/read": {"contents": st.lists(contents, max_size=2)},
    "prompts/get": {"messages": st.lists(message, max_size=2), "description": short},
    "completion/complete": {
        "completion": objects({"values": st.lists(short), "total": st.integers(), "hasMore": st.booleans()})
    },
}


def mend(result: Any, method: str = "tools/call", **params: Any) -> Any:
    """:returns: a result as clients get it."""
    return json.loads(mended(method, json.dumps(result).encode(), params)[0])


def text(value: str) -> dict[str, Any]:
    """:returns: a part with a text."""
    return {"type": "text", "text": value}


class MendingTests(SynchronousTestCase):
    """What becomes of wrong results."""

    @given(st.data())
    def test_clients_accept_every_result(self, data: st.DataObject) -> None:
        for method, members in RESULTS.items():
            result = data.draw(objects({**members, "_meta": objects({})}))
            if isinstance(result, dict):
                accept(method, codec.decode(mended(method, codec.encode(result), {"uri": "x://1"})[0]))
            else:
                self.assertRaises(codec.InvalidMessage, mended, method, codec.encode(result), {})

    def test_right_results_are_unchanged(self) -> None:
        for method, raw in (
            ("tools/call", b'{ "content": [{"type":"text","text":"a","x":1}], "structuredContent":{"a":[1.0]},"y":2}'),
            ("resources/read", b'{ "contents": [{"uri":"x://1","blob":"AAAA"}]}'),
            ("prompts/get", b'{ "messages": [{"role":"user","content":{"type":"text","text":"a"}}]}'),
            ("completion/complete", b'{ "completion": {"values":[]}}'),
            ("resources/subscribe", b"{ }"),
        ):
            self.assertEqual(mended(method, raw, {}), (raw, []))

    def test_structured_content_that_is_no_object_is_kept(self) -> None:
        for value in ([1, 2], "a", 5, False):
            result = mend({"content": [], "structuredContent": value})
            self.assertEqual(result["structuredContent"], {"result": value})
            self.assertEqual(len(result["content"]), 1)
            self.assertEqual(reply(codec.encode(result)).value, value)
        result = mend({"content": [text("a")], "structuredContent": None})
        self.assertEqual(result, {"content": [text("a")]})

    def test_content_of_any_form_is_a_list_of_parts(self) -> None:
        for content, parts in (
            ("plain", [text("plain")]),
            (None, []),
            (text("one"), [text("one")]),
            (["a", 5], [text("a"), text("5")]),
            ([{**text("a"), "annotations": None, "_meta": []}], [text("a")]),
            ([{"type": "text", "text": {"a": 1}}], [text('{"a":1}')]),
            ([{"type": "weird", "z": 1}], [text('{"type":"weird","z":1}')]),
            ([{"type": "image", "data": "AAAA"}], [text('{"type":"image","data":"AAAA"}')]),
        ):
            self.assertEqual(mend({"content": content, "x": 1}), {"content": parts, "x": 1})
        self.assertEqual(mend({"structuredContent": {"r": 7}})["content"], [text('{"r":7}')])
        self.assertEqual(mend({"toolResult": "old"})["content"], [text("old")])

    def test_error_mark_of_any_form_is_understood(self) -> None:
        for mark, failed in (("true", True), ("false", False), (1, True), (None, False)):
            self.assertIs(mend({"content": [], "isError": mark})["isError"], failed)

    def test_contents_of_resources_have_uri_and_text(self) -> None:
        for contents, parts in (
            ("a", [{"uri": "x://1", "text": "a"}]),
            ({"text": "a"}, [{"uri": "x://1", "text": "a"}]),
            ([{"uri": 5, "text": [1], "mimeType": None}], [{"uri": "x://1", "text": "[1]"}]),
            ([{"uri": "x://2", "blob": "AAAA", "_meta": None}], [{"uri": "x://2", "blob": "AAAA"}]),
        ):
            self.assertEqual(mend({"contents": contents}, "resources/read", uri="x://1"), {"contents": parts})

    def test_messages_of_prompts_have_one_part_each(self) -> None:
        result = mend(
            {"messages": [{"role": "system", "content": ["a", text("b")]}, "c"], "description": 5}, "prompts/get"
        )
        self.assertEqual(
            [(m["role"], m["content"]["text"]) for m in result["messages"]], [("user", part) for part in "abc"]
        )
        self.assertNotIn("description", result)

    def test_completions_are_texts(self) -> None:
        result = mend({"completion": {"values": [1, "a"], "total": "x"}}, "completion/complete")
        self.assertEqual(result, {"completion": {"values": ["1", "a"]}})

    def test_fault_is_named(self) -> None:
        _, (fault,) = mended("tools/call", b'{"content":[],"structuredContent":[1]}', {})
        self.assertIn("structuredContent", fault)
