"""Public names of tools."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.names import BACKEND_NAME, NAME_LIMIT, public_name

BACKENDS = st.from_regex(BACKEND_NAME, fullmatch=True)
TOOLS = st.one_of(st.text(max_size=80), st.from_regex(r"[a-z_-]{1,70}", fullmatch=True))


class NameTests(SynchronousTestCase):
    """Short, plain, unique and stable."""

    def test_ordinary_names_are_plain(self) -> None:
        self.assertEqual(public_name("git", "git_status"), "git__git_status")
        self.assertEqual(public_name("my-files", "read"), "my-files__read")

    @given(BACKENDS, TOOLS)
    def test_every_agent_takes_them(self, backend: str, tool: str) -> None:
        self.assertTrue(re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{NAME_LIMIT}}}", public_name(backend, tool)))

    @given(st.sets(st.tuples(BACKENDS, TOOLS), max_size=8))
    def test_they_are_different(self, pairs: set[tuple[str, str]]) -> None:
        self.assertEqual(len({public_name(*pair) for pair in pairs}), len(pairs))

    def test_what_looks_alike_is_different(self) -> None:
        alike = ["tool", "tool ", "Tool", "to ol", "to_ol", "../tool", "tööl", "x" * 60, "x" * 61]
        self.assertEqual(len({public_name("b", tool) for tool in alike}), len(alike))

    def test_a_plain_name_cannot_pass_for_a_shortened_one(self) -> None:
        shortened = public_name("b", "x" * 60)
        self.assertNotEqual(public_name("b", shortened.removeprefix("b__")), shortened)

    def test_a_separator_in_a_name_is_not_taken_for_another(self) -> None:
        self.assertNotEqual(public_name("a__b", "c"), public_name("a", "b__c"))
        self.assertNotEqual(public_name("a_", "b"), public_name("a", "_b"))

    def test_shortened_names_are_the_same_in_every_session(self) -> None:
        self.assertEqual(public_name("b", "x" * 60), f"b__{'x' * 34}_53b23d88")
