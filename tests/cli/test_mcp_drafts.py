"""Tests of ironcurtain.cli.mcp_drafts."""

from __future__ import annotations

from typing import Any, get_args

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.mcp_drafts import DRAFT_LIMIT, LINE_LIMIT, Drafts, drafts, use_of
from ironcurtain.policy.roles import RESOURCE_ROLES, Role
from ironcurtain.policy.rules import Policy


def tool(*names: str) -> dict[str, Any]:
    """:returns: the definition of a tool with these arguments."""
    return {"name": "read", "inputSchema": {"properties": {name: {"type": "string"} for name in names}}}


class DraftsTests(SynchronousTestCase):
    def drafts(self, *names: str) -> Drafts:
        return drafts("mine", {"read": tool(*names)}, Policy())

    def test_draft_is_shown_whole(self) -> None:
        found = self.drafts(*(f"plain_argument_number_{n}" for n in range(40)), "secret_path")
        *_, line = found.lines()
        self.assertGreater(len(line), 2 * LINE_LIMIT)
        self.assertIn("secret_path is a path: read (its name says so; read reads); plain_argument_number_0, ", line)

    def test_draft_that_nobody_would_read_is_not_made(self) -> None:
        found = self.drafts(*(f"argument_number_{n}" for n in range(DRAFT_LIMIT // 10)))
        self.assertEqual((dict(found.drafted), list(found.refused)), ({}, ["read"]))
        self.assertIn("too long to be read", list(found.lines())[-1])

    def test_names_of_arguments_are_escaped(self) -> None:
        *_, line = self.drafts("a\x1b[2Jb\nfake_path").lines()
        self.assertTrue(line.isprintable())

    def test_each_role_that_is_judged_has_words(self) -> None:
        said = {role: use_of((role,)) for role in get_args(Role) if role in RESOURCE_ROLES}
        self.assertEqual(len(set(said.values()) - {""}), len(RESOURCE_ROLES), said)
        self.assertEqual(
            use_of(("read-path", "write-path", "delete-path")), "a path: read, created or changed, removed"
        )
        self.assertEqual(use_of(("fetch-url", "read-path")), "a path: read, and an address that is fetched")
        self.assertEqual(use_of(("none",)), "")
