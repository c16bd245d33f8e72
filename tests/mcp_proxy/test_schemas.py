"""Schemas of tools that clients or model APIs refuse."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.expressions import LONGEST, is_portable
from ironcurtain.mcp_proxy.schemas import DEPTH, mended
from tests.mcp_proxy.npm import module, node
from tests.mcp_proxy.sdk_types import values

KEYWORDS = (
    "type", "items", "additionalItems", "properties", "$defs", "anyOf", "prefixItems", "required", "enum", "pattern",
    "minimum", "minLength", "multipleOf", "uniqueItems", "title", "$ref", "not", "dependentRequired", "nullable",
)  # fmt: skip
keyword_values = values | st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#x", "(", "int", "object"])
schemas: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(st.sampled_from(KEYWORDS), keyword_values, max_size=3),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner | values, max_size=2),
            "$defs": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "anyOf": st.lists(inner | values, max_size=2),
            "items": inner | st.lists(inner, max_size=2),
            "type": st.sampled_from(["object", "array", "float", ["string", "None"], "unknown"]),
            "$ref": keyword_values,
        },
    ),
    max_leaves=6,
)

REFUSED: tuple[dict[str, Any], ...] = (
    {"properties": {"a": {"$ref": "#/$defs/Missing"}}},
    {"properties": {"a": {"$ref": "https://example.org/schema.json"}}},
    {"properties": {"a": {"$ref": "#/properties/a"}}},
    {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}},
    {"properties": {"a": {"$ref": 5}}},
    {"properties": {"a": {"type": "float"}}},
    {"properties": {"a": {"type": "unknown"}}},
    {"properties": {"a": {"type": None}}},
    {"properties": {"a": {"type": ["string", "None"]}}},
    {"properties": {"a": {"type": "string", "required": True}}},
    {"properties": {"a": {"enum": []}}},
    {"properties": {"a": {"nullable": True}}},
    {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}},
    {"properties": {"a": {"type": "string", "format": None}}},
    {"properties": {"a": {"type": "string", "pattern": r"(?P<year>\d+)\Z"}}},
    {"properties": {"a": {"type": "array", "items": "string"}}},
    {"properties": {"a": {"$id": "x"}, "b": {"$id": "x", "type": "null"}}},
    {"additionalProperties": None},
    {"anyOf": {"type": "object"}},
    {"allOf": None},
    {"$id": 5},
)
"""What the official TypeScript client refuses, with all tools of all servers."""


def told(schema: dict[str, Any]) -> tuple[Any, list[str]]:
    """:returns: the mended schema, and what was said to be wrong."""
    said: list[str] = []
    return mended(schema, said.append), said


class SchemaTests(SynchronousTestCase):
    """Mended schemas."""

    def test_count_without_end_is_left_out(self) -> None:
        found, said = told({"minLength": 1e999})
        self.assertEqual((found, said), ({}, ["minLength must be a whole number; it is left out"]))

    @given(schemas)
    def test_every_schema_becomes_one_of_the_newest_draft(self, schema: dict[str, Any]) -> None:
        shown, said = told(schema)
        Draft202012Validator.check_schema(shown)
        self.assertEqual(shown == schema, not said)
        self.assertEqual(told(shown)[0], shown)

    def test_right_schemas_are_the_same_objects(self) -> None:
        tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
        schema = {
            "type": "object",
            "properties": {
                "tree": {"$ref": "#/$defs/Tree"},
                "with space": {"$ref": "#/$defs/a%20b"},
                "slash": {"$ref": "#/$defs/c~1d"},
                "named": {"$ref": "#name"},
                "whole": {"$ref": "#"},
                "text": {"type": ["string", "null"], "pattern": r"^[\w.-]+$", "x-own": None, "optional": True},
            },
            "required": ["tree"],
            "additionalProperties": False,
            "$defs": {"Tree": tree, "a b": {"$anchor": "name"}, "c/d": True},
        }
        self.assertIs(told(schema)[0], schema)

    def test_names_of_types_in_programming_languages_are_understood(self) -> None:
        for name, meant in (("int", "integer"), ("Float", "number"), ("str", "string"), ("STRING", "string")):
            shown, said = told({"properties": {"a": {"type": name}}})
            self.assertEqual(shown, {"properties": {"a": {"type": meant}}})
            self.assertEqual(said, [f"properties/a/type must be {meant}; it is taken as that"])

    def test_lists_of_items_are_those_of_the_named_draft(self) -> None:
        pair = {"items": [{"type": "string"}, {"type": "int"}], "additionalItems": False}
        right = [{"type": "string"}, {"type": "integer"}]
        self.assertEqual(told(pair)[0], {"prefixItems": right, "items": False})
        older = {"$schema": "http://json-schema.org/draft-07/schema#"}
        self.assertEqual(told({**older, **pair})[0], {**older, "items": right, "additionalItems": False})

    def test_wrong_keyword_is_left_out_alone(self) -> None:
        for schema in REFUSED:
            properties = {"good": {"type": "string"}, **schema.get("properties", {})}
            shown, said = told({"type": "object", **schema, "properties": properties})
            self.assertTrue(said, schema)
            self.assertEqual(shown["properties"]["good"], {"type": "string"})
            self.assertEqual(shown["properties"].keys(), properties.keys())

    def test_deep_schema_is_cut(self) -> None:
        schema: dict[str, Any] = {"type": "string"}
        for _ in range(DEPTH + 200):
            schema = {"properties": {"a": schema}}
        shown, (said,) = told(schema)
        self.assertRegex(said, r"^properties/a/.*\.\.\. is nested too deeply; any value is allowed$")
        self.assertEqual(json.dumps(shown).count('"properties"'), DEPTH + 1)

    def test_typescript_client_compiles_them(self) -> None:
        validator = module("@modelcontextprotocol", "sdk", "dist", "esm", "validation", "ajv-provider.js")
        program = (
            f"import {{ AjvJsonSchemaValidator }} from {json.dumps(str(validator))};"
            "import { readFileSync } from 'node:fs';"
            "const validator = new AjvJsonSchemaValidator();"
            "const compiles = s => { try { validator.getValidator(s); return true } catch { return false } };"
            "console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(compiles)));"
        )
        sent = [*REFUSED, *(told(schema)[0] for schema in REFUSED)]
        command = [node(), "--input-type=module", "--eval", program]
        answer = subprocess.run(command, input=json.dumps(sent), capture_output=True, text=True, check=True)
        count = len(REFUSED)
        self.assertEqual(json.loads(answer.stdout), [False] * count + [True] * count)


class ExpressionTests(SynchronousTestCase):
    """Regular expressions that Python and JavaScript have in common."""

    def test_usual_expressions_are_accepted(self) -> None:
        for expression in (
            "", r"^\d{4}-\d{2}-\d{2}$", r"^https?:\/\/[^\s/$.?#].[^\s]*$", r"^(?!.*\.\.)[\w.-]+$", "(?<year>a)b{2,}?",
            r"\p{L}+[\p{Lu}\d]\u{1F600}", r"(a)\1|b", r"(?:[A-Z]{2}|x)(?:-[0-9]+)?", r"[^\]]", r"(?<=a)b", "日本",
        ):  # fmt: skip
            self.assertTrue(is_portable(expression), expression)

    def test_what_javascript_refuses_is_not(self) -> None:
        for expression in (
            "(", "a]", "{x}", "a{,3}", "a++", "*a", "(?i)x", "(?P<a>x)", "(?=a)*", r"\A", r"\-", r"[\w-.]", "[z-a]",
            "(?>a)", "(?#c)", r"a\Z", "a" * (LONGEST + 1),
        ):  # fmt: skip
            self.assertFalse(is_portable(expression), expression[:20])
