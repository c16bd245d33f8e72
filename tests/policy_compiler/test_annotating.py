"""From definitions of tools to annotations: what is refused, what goes back to the model, and what it is told."""

from __future__ import annotations

import json
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.annotations import ServerAnnotations, ToolAnnotation
from ironcurtain.policy.drafts import unsuited
from ironcurtain.policy.roles import METHOD_ROLE, PARTY_ROLE, Role
from ironcurtain.policy_compiler import prompt
from ironcurtain.policy_compiler.annotating import (
    BATCH_CHARACTERS,
    Annotated,
    AnnotationRounds,
    as_answer,
    batches,
    doubts,
    parse_annotations,
)
from ironcurtain.policy_compiler.parts import ServerTools
from ironcurtain.policy_compiler.rounds import ROUNDS, Say
from tests.policy_compiler.answers import ATTACH, SEARCH, TICKETS, annotated, annotation

WHEN = {"default": ["none"], "when": [{"condition": {"arg": "ticket", "equals": "x"}, "roles": ["read-path"]}]}


def parsed(text: str) -> Annotated:
    """:returns: the annotations in an answer."""
    return parse_annotations(text, "tickets", TICKETS)


class AnswerTests(SynchronousTestCase):
    """:func:`parse_annotations`"""

    def test_valid_annotations(self) -> None:
        for text in (annotated(SEARCH, ATTACH), f"```json\n{annotated(ATTACH, SEARCH)}\n```"):
            found = parsed(text)
            self.assertEqual(found.refused, {})
            self.assertEqual(found.tools["attach"].args, {"ticket": ("none",), "file": ("read-path",)})

    def test_what_is_refused(self) -> None:
        ticket = ["none"]
        for wrong, why in (
            (annotation("attach", ticket=ticket), "no roles: file"),
            (annotation("attach", ticket=ticket, file=["read-path"], more=["none"]), "no such arguments: more"),
            (annotation("attach", ticket=ticket, file=["read"]), "must be one of"),
            (annotation("attach", ticket=ticket, file=[]), "needs a role"),
            (annotation("attach", ticket=ticket, file={**WHEN, "default": []}), "needs a role"),
            (annotation("attach", ticket=ticket, file="none"), "file"),
            (annotation("attach", ticket=ticket, file={**WHEN, "else": []}), "else"),
            (annotation("attach", ticket=ticket, file={"default": ["none"], "when": [{"roles": []}]}), "condition"),
            ({"toolName": "attach"}, "args"),
        ):
            found = parsed(annotated(SEARCH, wrong))
            self.assertEqual(list(found.tools), ["search"])
            self.assertIn(why, found.refused["attach"])
        condition = {"arg": "mode", "equals": 1}
        mode = annotation("attach", ticket=["none"], file={"default": ["none"], "when": [{"condition": condition}]})
        mode["args"]["file"]["when"][0]["roles"] = ["read-path"]
        self.assertIn("mode, which is no argument", parsed(annotated(SEARCH, mode)).refused["attach"])

    def test_an_answer_that_lacks_a_tool_or_has_it_twice(self) -> None:
        self.assertIn("no annotation", parsed(annotated(SEARCH)).refused["attach"])
        other = {**ATTACH, "args": {**ATTACH["args"], "file": ["write-path"]}}
        found = parsed(annotated(SEARCH, ATTACH, other))
        self.assertEqual((list(found.tools), list(found.refused)), (["search"], ["attach"]))
        for text in ("Sure!", "[]", '{"tools": {}}', json.dumps({"tools": [], "rules": []})):
            self.assertEqual(parsed(text).refused.keys(), TICKETS.keys())

    def test_other_tools_are_ignored(self) -> None:
        found = parse_annotations(annotated(SEARCH, ATTACH), "tickets", {"search": TICKETS["search"]})
        self.assertEqual((list(found.tools), found.refused), (["search"], {}))

    def test_a_result_is_an_answer(self) -> None:
        file = {"default": ["read-path"], "when": [{"condition": {"arg": "ticket", "is": "absent"}, "roles": ["none"]}]}
        for raw in (ATTACH, annotation("attach", ticket=["none"], file=file)):
            tool = parsed(annotated(raw)).tools["attach"]
            self.assertEqual(parsed(as_answer(tool)).tools, {"attach": tool})

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.sampled_from(["attach", "none", "read-path", "x"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["tools", "toolName", "args", "ticket", "file", "default", "when", "comment"]),
                    inner,
                )
            ),
        )
    )
    def test_each_tool_is_annotated_or_refused(self, value: Any) -> None:
        tools = value if isinstance(value, list) else [value]
        for text in (json.dumps(value), json.dumps({"tools": tools}), str(value)):
            found = parsed(text)
            self.assertEqual(found.tools.keys() | found.refused.keys(), TICKETS.keys())
            self.assertFalse(found.tools.keys() & found.refused.keys())


class DefinitionTests(SynchronousTestCase):
    """What is read in a server's definitions."""

    def test_arguments_that_no_annotation_can_cover(self) -> None:
        for schema, expected in (
            (TICKETS["search"]["inputSchema"], False),
            ({"type": "object"}, False),
            ({"properties": {}, "additionalProperties": False}, False),
            ({"properties": {}, "additionalProperties": True}, True),
            ({"properties": {}, "additionalProperties": {"type": "string"}}, True),
            ({"properties": []}, True),
            (None, True),
        ):
            self.assertEqual(bool(unsuited({"name": "x", "inputSchema": schema})), expected, schema)

    def test_doubts(self) -> None:
        for roles, doubted in ((["none"], True), (["email-body"], True), (["read-path"], False), (WHEN, True)):
            tool = parsed(annotated(annotation("attach", ticket=["none"], file=roles))).tools["attach"]
            self.assertEqual(doubts(TICKETS["attach"], tool), ["file"] if doubted else [])

    def test_the_text_of_a_server_is_data_on_one_line(self) -> None:
        text = AnnotationRounds("tickets", TICKETS).begin().text
        first, *lines = text.splitlines()
        self.assertIn("tickets", first)
        self.assertEqual([line[:6] for line in lines], ["DATA {", "DATA {"])
        self.assertNotIn("\u202e", text)
        self.assertIn("never\ninstructions", prompt.ANNOTATING)

    def test_the_model_is_told_all_roles(self) -> None:
        for role in get_args(Role):  # no server of a person has calls with the others
            self.assertIs(f'"{role}"' in prompt.ANNOTATING, role not in (METHOD_ROLE, PARTY_ROLE), role)

    def test_many_definitions_are_several_conversations(self) -> None:
        long = {"description": "x" * (BATCH_CHARACTERS // 3)}
        huge = {"description": "x" * BATCH_CHARACTERS}
        found = [list(each.definitions) for each in batches("s", {**{str(n): long for n in range(5)}, "h": huge})]
        self.assertEqual(found, [["0", "1"], ["2", "3"], ["4"], ["h"]])
        self.assertEqual(list(batches("s", {})), [])

    def test_present_annotations_win(self) -> None:
        mine = ToolAnnotation("search", {"query": ("fetch-url",)})
        server = ServerTools("tickets", ServerAnnotations((mine,)), TICKETS)
        self.assertEqual(list(server.unannotated()), ["attach"])
        every = server.annotated(parsed(annotated(SEARCH, ATTACH)).tools)
        self.assertEqual([tool.name for tool in every.servers["tickets"].tools], ["attach", "search"])
        self.assertEqual(every.table()[("tickets", "search")], mine)


class RoundTests(SynchronousTestCase):
    """:class:`AnnotationRounds`"""

    def test_only_what_was_refused_goes_back(self) -> None:
        rounds = AnnotationRounds("tickets", TICKETS)
        said = rounds.answered(annotated(SEARCH, annotation("attach", ticket=["none"])))
        assert isinstance(said, Say)
        self.assertIn('"attach": answer: these arguments have no roles: file', said.text)
        self.assertNotIn('"search"', said.text)
        result = rounds.answered(annotated(ATTACH))
        assert isinstance(result, Annotated)
        self.assertEqual((set(result.tools), result.refused), ({"attach", "search"}, {}))

    def test_what_stays_wrong_has_no_annotation(self) -> None:
        rounds = AnnotationRounds("tickets", TICKETS)
        steps = [rounds.answered(annotated(SEARCH)), *(rounds.answered("no") for _ in range(ROUNDS - 1))]
        self.assertTrue(all(isinstance(step, Say) for step in steps[:-1]))
        result = steps[-1]
        assert isinstance(result, Annotated)
        self.assertEqual((list(result.tools), list(result.refused)), (["search"], ["attach"]))
