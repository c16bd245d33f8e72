"""Guesses about arguments, and drafts of annotations."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.drafts import Draft, draft, inner_paths, meaning

TEXT = {"type": "string"}


def kind(name: str, **schema: Any) -> str:
    """:returns: what an argument seems to be."""
    found = meaning(name, schema or TEXT)
    return "" if found is None else found.kind


def tool(name: str, properties: dict[str, Any], **members: Any) -> dict[str, Any]:
    """:returns: the definition of a tool."""
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}, **members}


class MeaningTests(SynchronousTestCase):
    """What names, types, formats and descriptions say."""

    def test_names_of_paths(self) -> None:
        for name in ("path", "filePath", "repo_path", "output-dir", "FILES", "workdir", "sourceDirectory"):
            self.assertEqual(kind(name), "path", name)

    def test_names_that_only_sound_like_paths(self) -> None:
        for name in ("profile", "filePattern", "path_type", "fileSize", "directive", "pathology", "query", "id"):
            self.assertEqual(kind(name), "", name)

    def test_addresses(self) -> None:
        for name in ("url", "imageUrl", "target_uri", "URLs"):
            self.assertEqual(kind(name), "address", name)
        self.assertEqual(kind("data", type="string", format="uri"), "address")

    def test_formats_win_over_names(self) -> None:
        self.assertEqual(kind("url", type="string", format="file-path"), "path")
        self.assertEqual(kind("file", type="string", format="uri"), "address")

    def test_descriptions(self) -> None:
        self.assertEqual(kind("input", type="string", description="Absolute path of the report"), "path")
        self.assertEqual(kind("input", type="string", description="The path to read"), "path")
        self.assertEqual(kind("page", type="string", description="The URL to open"), "address")
        self.assertEqual(kind("input", type="string", description="A career path"), "")
        self.assertEqual(kind("filter", type="string", description="A regexp that the URL matches"), "")

    def test_only_texts_can_be_paths(self) -> None:
        schema: dict[str, Any]
        for schema in ({"type": "boolean"}, {"type": "integer"}, {"type": "string", "enum": ["a"]}, {"const": "a"}):
            self.assertEqual(kind("path", **schema), "", schema)
        for schema in (
            {"type": "array", "items": TEXT},
            {"type": ["string", "null"]},
            {"anyOf": [{"type": "null"}, TEXT]},
            {"type": "array"},
            {"title": "no type"},
        ):
            self.assertEqual(kind("path", **schema), "path", schema)

    def test_members_inside_arguments(self) -> None:
        files = {"type": "array", "items": {"type": "object", "properties": {"path": TEXT, "content": TEXT}}}
        self.assertEqual(inner_paths(files), ["path"])
        self.assertEqual(inner_paths({"anyOf": [{"type": "object", "properties": {"url": TEXT}}]}), ["url"])
        self.assertEqual(inner_paths({"type": "object", "properties": {"name": TEXT}}), [])

    @settings(max_examples=100, deadline=None, database=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "properties", "items", "anyOf", "format", "enum", "path", "description"]),
                    inner,
                    max_size=4,
                )
            ),
        )
    )
    def test_any_schema_can_be_read(self, schema: Any) -> None:
        meaning("path", schema)
        inner_paths(schema)
        draft({"name": "x", "inputSchema": schema, "annotations": schema})


class DraftTests(SynchronousTestCase):
    """Roles from names and hints."""

    def roles(self, name: str, argument: str = "path", **members: Any) -> tuple[str, ...]:
        found = draft(tool(name, {argument: TEXT}, **members))
        assert isinstance(found, Draft), found
        self.assertEqual(list(found.why), [argument])
        roles: Any = found.tool.args[argument]
        return tuple(roles)

    def test_verbs(self) -> None:
        for name, expected in (
            ("read_file", ("read-path",)),
            ("listDirectory", ("read-path",)),
            ("write_file", ("write-path",)),
            ("edit_file", ("read-path", "write-path")),
            ("delete-file", ("delete-path",)),
            ("process", ("read-path", "write-path", "delete-path")),
        ):
            self.assertEqual(self.roles(name), expected, name)

    def test_arguments_that_are_written(self) -> None:
        self.assertEqual(self.roles("read_page", "output_path"), ("write-path",))
        self.assertEqual(self.roles("move_file", "destination_path"), ("write-path",))
        self.assertEqual(self.roles("move_file", "source_path"), ("read-path", "delete-path"))
        self.assertEqual(self.roles("copy_file", "source_path"), ("read-path",))

    def test_hints(self) -> None:
        self.assertEqual(self.roles("process", annotations={"readOnlyHint": True}), ("read-path",))
        every = ("read-path", "write-path", "delete-path")
        self.assertEqual(self.roles("read_file", annotations={"readOnlyHint": False}), every)
        self.assertEqual(self.roles("shot", "output_file", annotations={"readOnlyHint": True}), ("write-path",))

    def test_descriptions_that_speak_of_writing(self) -> None:
        path = {**TEXT, "description": "File name to save the picture to"}
        for name, hints, expected in (
            ("shot", {"readOnlyHint": True}, ("write-path",)),
            ("get_shot", {"readOnlyHint": True}, ("write-path",)),
            ("get_shot", {}, ("read-path", "write-path")),
        ):
            found = draft(tool(name, {"file": path}, annotations=hints))
            assert isinstance(found, Draft)
            self.assertEqual(found.tool.args["file"], expected, name)

    def test_addresses_and_other_arguments(self) -> None:
        found = draft(tool("get", {"url": TEXT, "limit": {"type": "integer"}}))
        assert isinstance(found, Draft)
        self.assertEqual(found.tool.args, {"url": ("fetch-url",), "limit": ("none",)})
        self.assertEqual(found.why, {"url": "its name says so"})
        self.assertEqual(draft(tool("ping", {})).tool.args, {})  # type: ignore[union-attr]

    def test_tools_without_a_draft(self) -> None:
        files = {"files": {"type": "array", "items": {"type": "object", "properties": {"path": TEXT}}}}
        for definition, why in (
            (tool("push", files), "files has path inside"),
            ({"name": "x"}, "does not declare its arguments"),
            ({"name": "x", "inputSchema": {"additionalProperties": True}}, "does not declare"),
        ):
            self.assertIn(why, draft(definition))
