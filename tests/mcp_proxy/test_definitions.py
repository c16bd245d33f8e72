"""Definitions that break the protocol."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.catalogue import KINDS, PROMPTS, RESOURCES, TOOLS, Catalogue
from ironcurtain.mcp_proxy.definitions import LEVELS, mended, once
from ironcurtain.mcp_proxy.pins import Pin
from tests.mcp_proxy.sdk_types import accept, objects, values

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
text = st.text(max_size=5)
schema = objects(
    {
        "type": st.sampled_from(["object", "Object", "array", ["object", "null"]]),
        "properties": st.dictionaries(
            text, st.booleans() | st.sampled_from([{"type": "string"}, {"type": "int"}, {"$ref": "#/$defs/x"}]) | values
        ),
        "required": st.lists(text | st.integers(), max_size=2),
        "$schema": text,
    }
)
icon = objects({"src": text, "mimeType": text, "sizes": st.lists(text), "theme": st.just("dark") | text})
notes = objects({"audience": st.lists(st.just("user") | text, max_size=2), "priority": st.floats(), "title": text})
definition = objects(
    {
        **dict.fromkeys(("name", "uri", "uriTemplate", "title", "description", "mimeType"), text),
        "inputSchema": schema,
        "outputSchema": schema,
        "icons": st.lists(icon, max_size=2),
        "annotations": notes,
        "execution": objects({"taskSupport": st.just("optional") | text}),
        "arguments": st.lists(objects({"name": text, "description": text, "required": st.booleans()}), max_size=2),
        "size": st.integers(),
        "_meta": objects({"a": text}),
    }
)


def shown(member: str, *definitions: Any) -> list[dict[str, Any]]:
    """:returns: definitions as agents see them."""
    return [dict(listed.shown) for listed in mended(member, definitions)[0]]


class MendingTests(SynchronousTestCase):
    """What becomes of wrong definitions."""

    @given(
        st.sampled_from(["inputSchema", "outputSchema", "_meta", "annotations", "arguments", "unheard-of"]),
        st.integers(LEVELS - 3, LEVELS + 3) | st.integers(1, 450),
    )
    def test_one_nested_too_deeply_is_left_out_and_the_others_stay(self, key: str, levels: int) -> None:
        deep: Any = "\u200b"
        for _ in range(levels):
            deep = {"properties": deep} if key.endswith("Schema") else [deep]
        names = {"name": "a", "uri": "a:a", "uriTemplate": "a:{a}"}
        whole = {each: f"b{name}" for each, name in names.items()}
        catalogue = Catalogue(["a"], str, lambda server, said: {d["name"]: Pin(dict(d), 0.0) for d in said})
        for kind in KINDS:
            catalogue.take("a", kind, [{**names, key: deep}, {**whole, "inputSchema": SCHEMA}])
            faults = catalogue.faults["a", kind.method]
            self.assertEqual(any("nested too deeply; left out" in fault for fault in faults), levels >= LEVELS, faults)
        kept = 2 if levels < LEVELS else 1
        tables = (catalogue.tools, catalogue.prompts, catalogue.resources, catalogue.templates)
        self.assertEqual([len(table) for table in tables], [kept] * 4)

    @given(st.lists(definition, max_size=4))
    def test_clients_accept_every_list(self, definitions: list[Any]) -> None:
        catalogue = Catalogue(["a"], str, lambda server, said: {d["name"]: Pin(dict(d), 0.0) for d in said})
        for kind in KINDS:
            catalogue.take("a", kind, definitions)
            table: Any = {
                "tools": catalogue.offered,
                "prompts": catalogue.prompts,
                "resources": catalogue.resources,
                "resourceTemplates": catalogue.templates,
            }[kind.member]
            accept(kind.method, {kind.member: [dict(entry.definition) for entry in table.values()]})

    @given(st.lists(definition, max_size=4))
    def test_whatever_is_changed_is_named(self, definitions: list[Any]) -> None:
        for kind in KINDS:
            usable, faults = mended(kind.member, definitions)
            changed = len(usable) < len(definitions) or any(listed.sent != listed.shown for listed in usable)
            self.assertEqual(changed, bool(faults))

    def test_right_definitions_are_the_same_objects(self) -> None:
        tool = {"name": "t", "inputSchema": SCHEMA, "outputSchema": SCHEMA, "title": "T", "x": 1}
        (listed,), faults = mended("tools", [tool])
        self.assertIs(listed.shown, tool)
        self.assertEqual(faults, [])

    def test_schema_of_an_object_is_taken_as_that(self) -> None:
        any_object = {"type": "object"}
        for sent, seen in (
            ({}, any_object),
            ({"inputSchema": None}, any_object),
            ({"inputSchema": {}}, any_object),
            ({"inputSchema": {"properties": {"q": {}}}}, {"type": "object", "properties": {"q": {}}}),
            ({"inputSchema": {"type": ["object", "null"]}}, any_object),
            ({"inputSchema": {"type": "OBJECT"}}, any_object),
            ({"inputSchema": {**any_object, "properties": None, "required": "q"}}, any_object),
            (
                {"inputSchema": {**any_object, "properties": {"a": True, "b": False, "c": 5}}},
                {**any_object, "properties": {"a": {}, "b": {"not": {}}, "c": {}}},
            ),
        ):
            self.assertEqual(shown("tools", {"name": "t", **sent}), [{"name": "t", "inputSchema": seen}])

    def test_wrong_part_of_a_schema_is_left_out_and_named(self) -> None:
        wrong = {"type": "object", "properties": {"a": {"$ref": "#/$defs/X"}, "b": {"type": "string"}}}
        right = {"type": "object", "properties": {"a": {}, "b": {"type": "string"}}}
        usable, faults = mended("tools", [{"name": "t", "inputSchema": wrong, "outputSchema": wrong}])
        self.assertEqual(usable[0].shown, {"name": "t", "inputSchema": right, "outputSchema": right})
        why = "properties/a/$ref refers to '#/$defs/X', which is not in the schema; it is left out"
        self.assertEqual(faults, [f"tool t: inputSchema: {why}", f"tool t: outputSchema: {why}"])

    def test_tool_whose_arguments_are_no_object_is_left_out_alone(self) -> None:
        unusable: list[Any] = [{"type": "array"}, {"type": 5}, False, [], "{}"]
        for schema in unusable:
            usable, (fault,) = mended(
                "tools", [{"name": "bad", "inputSchema": schema}, {"name": "t", "inputSchema": {"type": "object"}}]
            )
            self.assertEqual([listed.sent["name"] for listed in usable], ["t"])
            self.assertRegex(fault, "^tool bad: .*inputSchema must be .*object; left out$")

    def test_definitions_with_the_same_fault_are_named_together(self) -> None:
        bad = [{"name": name, "inputSchema": []} for name in "abcde"]
        why = "inputSchema must be an object; left out"
        for count, named in ((1, "tool a"), (2, "tools a, b"), (5, "tools a, b, c and 2 more")):
            self.assertEqual(mended("tools", bad[:count]), ([], [f"{named}: {why}"]))
        usable, _ = mended("tools", [{"name": name, "inputSchema": SCHEMA} for name in "abab"])
        self.assertEqual(once(usable, "name", "tools")[1], ["tools a, b: listed more than once; the first is used"])

    def test_wrong_members_that_may_be_missing_are_left_out(self) -> None:
        tool = {"name": "t", "inputSchema": SCHEMA}
        wrong: dict[str, Any] = {
            "description": None,
            "title": 5,
            "icons": "a.png",
            "annotations": [],
            "_meta": [],
            "outputSchema": {"type": "array"},
            "execution": True,
        }
        usable, faults = mended("tools", [{**tool, **wrong}])
        self.assertEqual(usable[0].shown, tool)
        self.assertEqual(len(faults), len(wrong))
        for name in wrong:
            self.assertTrue(any(fault.startswith(f"tool t: {name} ") for fault in faults), name)

    def test_resources_and_prompts_are_mended(self) -> None:
        self.assertEqual(shown("resources", {"uri": "x://1", "size": "5"}), [{"uri": "x://1", "name": "x://1"}])
        self.assertEqual(shown("resources", {"name": "n"}, {"uri": 5}), [])
        template = {"uriTemplate": "x://{a}", "name": "n"}
        self.assertEqual(shown("resourceTemplates", {**template, "mimeType": 5}), [template])
        arguments = [{"name": "a", "required": "yes"}, {}, "b", {"name": 5}]
        self.assertEqual(
            shown("prompts", {"name": "p", "arguments": arguments}), [{"name": "p", "arguments": [{"name": "a"}]}]
        )
        self.assertEqual(shown("prompts", {"name": "p", "arguments": {"a": {}}}), [{"name": "p"}])

    def test_equal_faults_are_named_once(self) -> None:
        _, faults = mended("prompts", [{"name": f"p{i}", "title": None} for i in range(5)] + [7])
        self.assertEqual(len(faults), 2)
        self.assertIn("prompts p0, p1, p2 and 2 more: title is wrong", faults[0])
        self.assertIn("prompt number 6: must be an object", faults[1])


class PinTests(SynchronousTestCase):
    """Mended definitions and pins."""

    def test_pin_is_of_the_definition_as_it_was_sent(self) -> None:
        pinned: list[Any] = []

        def pin(server: str, said: Any) -> dict[str, Pin]:
            pinned.append(list(said))
            return {"t": Pin({"name": "t", "description": None}, 0.0)}

        catalogue = Catalogue(["a"], str, pin)
        catalogue.take("a", TOOLS, [{"name": "t", "description": None}])
        self.assertEqual(pinned, [[{"name": "t", "description": None}]])
        self.assertEqual(catalogue.offered["a__t"].definition, {"name": "t", "inputSchema": {"type": "object"}})
        catalogue.take("a", TOOLS, [{"name": "t", "description": 5}])
        self.assertEqual(catalogue.tools["a__t"].withheld, "changed-definition")

    def test_faults_are_known_by_list(self) -> None:
        catalogue = Catalogue(["a"], str, lambda server, said: {})
        for kind in (PROMPTS, RESOURCES):
            catalogue.take("a", kind, [5])
        self.assertEqual(list(catalogue.faults), [("a", "prompts/list"), ("a", "resources/list")])
        catalogue.take("a", PROMPTS, [])
        self.assertEqual(catalogue.faults["a", "prompts/list"], [])
