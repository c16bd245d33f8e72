"""An agent that works in its workspace's own path: both names of a file are one file."""

from __future__ import annotations

import os
import shutil
import tempfile

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.permission import Scope, make_scope
from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.verdict import Decision, ToolCall, Verdict

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}


class OwnPathTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="ic"))
        self.addCleanup(shutil.rmtree, self.top)
        self.workspace = f"{self.top}/code"
        os.makedirs(f"{self.workspace}/.git")

    def judge(self, path: str, protected: tuple[str, ...] = ()) -> Verdict:
        bounds = ServerBounds(reach=(self.workspace,))
        engine = PolicyEngine(
            default_policy(),
            default_annotations(),
            paths=PathMap(self.workspace, self.workspace),
            home=f"{self.top}/home",
            protected=protected,
            servers={"filesystem": bounds},
        )
        return engine.evaluate(ToolCall("filesystem", "write_file", {"path": path, "content": ""}), SCHEMA)

    def scope(self, verdict: Verdict) -> Scope | None:
        shown = PathMap(self.workspace, self.workspace).to_agent
        return make_scope(
            "filesystem",
            "write_file",
            verdict,
            definition="d",
            schema=SCHEMA,
            policy_version="1",
            home=f"{self.top}/home",
            is_directory=os.path.isdir,
            shown=shown,
        )

    def test_both_names_get_one_verdict_and_one_approval(self) -> None:
        for name in ("new", ".git/config"):
            one, other = self.judge(f"/workspace/{name}"), self.judge(f"{self.workspace}/{name}")
            self.assertEqual(one.arguments["path"], f"{self.workspace}/{name}")
            self.assertEqual(one, other)
            self.assertEqual(self.scope(one), self.scope(other))
        self.assertEqual(self.judge("/workspace/new").decision, Decision.ALLOW)

    def test_protected_file_is_denied_by_both_names(self) -> None:
        for path in (f"{self.workspace}/key", "/workspace/key", "key", "/workspace/../workspace/key"):
            verdict = self.judge(path, (f"{self.workspace}/key",))
            self.assertNotEqual(verdict.decision, Decision.ALLOW, path)
