"""Whether a call can be undone, from the roles of its arguments."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.reversal import is_lasting, undo_words
from ironcurtain.policy.verdict import Reversal, ToolCall
from tests.policy.worlds import World


class ReversalTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World.make({"files": {"$WORKSPACE/f": "", "$HOME/g": ""}})
        self.addCleanup(self.world.remove)

    def reversal(self, server: str, tool: str, sandboxed: bool = True, **arguments: Any) -> Reversal:
        """:returns: that of a call of a tool with IronCurtain's own annotation."""
        engine = PolicyEngine(
            default_policy(),
            default_annotations(),
            paths=PathMap(self.world.workspace),
            home=self.world.home,
            servers={server: ServerBounds(sandboxed=sandboxed)},
        )
        schema = {"type": "object", "properties": {name: {} for name in arguments}}
        return engine.evaluate(ToolCall(server, tool, arguments), schema).reversal

    def test_files_in_the_workspace(self) -> None:
        self.assertIs(self.reversal("filesystem", "write_file", path="f", content="x"), Reversal.SNAPSHOT)
        moved = self.reversal("filesystem", "move_file", source="f", destination="h")
        self.assertIs(moved, Reversal.SNAPSHOT)

    def test_files_elsewhere_one_is_enough(self) -> None:
        self.assertIs(self.reversal("filesystem", "write_file", path="~/g", content="x"), Reversal.OUTSIDE)
        moved = self.reversal("filesystem", "move_file", source="f", destination="~/h")
        self.assertIs(moved, Reversal.OUTSIDE)

    def test_reading(self) -> None:
        self.assertIs(self.reversal("filesystem", "read_text_file", path="~/g"), Reversal.READS)

    def test_what_leaves_the_machine(self) -> None:
        self.assertIs(self.reversal("fetch", "fetch", url="https://example.org/"), Reversal.REMOTE)
        self.assertIs(
            self.reversal("git-remote", "git_push", url="https://example.org/r", repository="."), Reversal.REMOTE
        )

    def test_looking_and_listening_read_what_the_agent_then_knows(self) -> None:
        self.assertIs(self.reversal("desktop", "tree", app="mousepad"), Reversal.READS)
        self.assertIs(self.reversal("desktop", "windows"), Reversal.READS)
        self.assertIs(self.reversal("desktop", "listen", source="microphone"), Reversal.READS)

    def test_operating_an_application_cannot_be_undone(self) -> None:
        self.assertIs(self.reversal("desktop", "click", app="mousepad", point=[1, 2]), Reversal.DESKTOP)
        self.assertIs(self.reversal("desktop", "speak", text="hello"), Reversal.DESKTOP)
        self.assertIn("cannot be undone", undo_words(Reversal.DESKTOP))
        self.assertTrue(is_lasting(Reversal.DESKTOP))

    def test_roles_that_are_not_known(self) -> None:
        self.assertIs(self.reversal("nobody", "knows", path="f"), Reversal.UNKNOWN)
        self.assertIs(self.reversal("filesystem", "write_file"), Reversal.UNKNOWN)

    def test_a_server_outside_any_sandbox_may_do_anything(self) -> None:
        call = self.reversal("filesystem", "write_file", False, path="f", content="x")
        self.assertIs(call, Reversal.UNKNOWN)
