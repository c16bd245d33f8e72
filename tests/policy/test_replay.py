"""Replaying recorded calls: by another policy, without the files of that time, and without guessing."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.network_gate import CONFIGURED_RULE
from ironcurtain.mcp_proxy.pins import WITHHELD
from ironcurtain.mcp_proxy.refusals import BREAKER_RULE
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.loading import tool_annotations
from ironcurtain.policy.recorded import (
    REFUSED_BY_SESSION,
    FormerWorkspace,
    RecordedCall,
    SessionRecords,
    incomplete,
)
from ironcurtain.policy.replay import ReplayReport, VerdictChange, replay
from ironcurtain.secrets.redaction import Redactor
from tests.policy.test_cases import judged
from tests.policy.worlds import CASES, World, rule


def call_record(server: str, tool: str, arguments: Any, decision: str, by: str, **more: Any) -> dict[str, Any]:
    """:returns: a record of a call as the gate writes it."""
    fields = {"callId": "c", "server": server, "tool": tool, "arguments": arguments, "decision": decision, "rule": by}
    return {"sequence": 1, "time": "2026-01-01T00:00:00.000Z", "kind": "call", **fields, "reason": "", **more}


def calls_of(records: Sequence[dict[str, Any]]) -> Iterator[RecordedCall]:
    """:returns: the calls among records, with the annotations of the cases."""
    return SessionRecords(tool_annotations(CASES["annotations"])).calls(records)


class ReplayCase(SynchronousTestCase):
    """Judges records by an engine for a workspace that is gone."""

    def setUp(self) -> None:
        self.world = World.make(CASES["trees"]["plain"])
        self.addCleanup(self.world.remove)
        shutil.rmtree(self.world.workspace)

    def replayed(self, *records: dict[str, Any], rules: Any = (), **policy: Any) -> ReplayReport:
        """:returns: the report on the calls among some records."""
        workspace = {"kind": "session", "workspace": self.world.workspace}
        report = ReplayReport()
        replay(report, "1", calls_of([workspace, *records]), lambda place: self.engine(place, rules, policy))
        return report

    def engine(self, workspace: str, rules: Any, policy: Any) -> PolicyEngine:
        """:returns: an engine that looks at no file in the workspace."""
        self.assertEqual(workspace, self.world.workspace)
        return self.world.engine(rules, view=FormerWorkspace(workspace), **policy)


class SamePolicyTests(SynchronousTestCase):
    """The policy that judged a call judges its record in the same way."""

    def test_every_case_is_the_same_or_undecided(self) -> None:
        undecided = []
        for case in CASES["cases"]:
            world = World.make(CASES["trees"][case["tree"]])
            verdict, call = judged(case, world), case["call"]
            world.workspace = os.path.realpath(world.workspace)
            shutil.rmtree(world.workspace)
            policy = copy.deepcopy(CASES["policies"][case["policy"]])
            engine = world.engine(
                policy.pop("rules"), domains=case.get("serverDomains"), view=FormerWorkspace(world.workspace), **policy
            )
            records = [
                {"kind": "session", "workspace": world.workspace},
                call_record(call["server"], call["tool"], verdict.arguments, verdict.decision, verdict.rule),
            ]
            report = ReplayReport()
            replay(report, "1", calls_of(records), lambda _, engine=engine: engine)  # type: ignore[misc]
            self.assertEqual(report.changes, {}, case["id"])
            undecided += [case["id"]] if report.undecided else []
            world.remove()
        self.assertLess(len(undecided), len(CASES["cases"]) / 4, undecided)
        self.assertGreater(len(undecided), 0)


class ChangeTests(ReplayCase):
    """Differences are grouped."""

    def test_calls_of_one_tool_with_the_same_change_are_one_group(self) -> None:
        path = f"{self.world.home}/Documents/{{}}"
        records = [
            call_record("filesystem", "read_text_file", {"path": path.format(n)}, "escalate", "ask", sequence=n)
            for n in range(1, 4)
        ]
        documents = {"roles": ["read-path"], "within": "~/Documents"}
        report = self.replayed(*records, rules=[rule("read", "allow", paths=documents)])
        [(change, calls)] = report.changes.items()
        self.assertEqual(change, VerdictChange("filesystem", "read_text_file", "escalate", "ask", "allow", "read"))
        self.assertEqual((calls.count, calls.example.sequence, calls.session, report.changed), (3, 1, "1", 3))

    def test_another_rule_with_the_same_decision_is_no_change(self) -> None:
        record = call_record("filesystem", "read_text_file", {"path": "/etc/hosts"}, "deny", "mine")
        report = self.replayed(record)
        self.assertEqual((report.same, report.changes), (1, {}))

    def test_the_workspace_is_the_one_of_the_record(self) -> None:
        record = call_record("filesystem", "read_text_file", {"path": f"{self.world.workspace}/x"}, "deny", "mine")
        [change] = self.replayed(record).changes
        self.assertEqual(change.new_rule, "structural-sandbox-allow")

    def test_what_the_session_refused_is_not_compared(self) -> None:
        records = [call_record("filesystem", "read_text_file", {"path": "x"}, "deny", by) for by in REFUSED_BY_SESSION]
        report = self.replayed(*records)
        self.assertEqual((report.unaffected, report.same, report.changes), (len(records), 0, {}))
        self.assertLessEqual({BREAKER_RULE, CONFIGURED_RULE, *WITHHELD}, REFUSED_BY_SESSION)

    def test_a_resource(self) -> None:
        record = call_record("filesystem", "resources/read", {"uri": "file:///etc/hosts"}, "allow", "mine")
        [change] = self.replayed(record).changes
        self.assertEqual(change.new_rule, "default-deny")


class UndecidedTests(ReplayCase):
    """What a record lacks is said, not guessed."""

    def why(self, arguments: Any, by: str = "mine", tool: str = "read_text_file", **more: Any) -> str:
        """:returns: why a call is undecided; empty if it is not."""
        return "".join(self.replayed(call_record("filesystem", tool, arguments, "deny", by), **more).undecided)

    def test_arguments_that_are_not_complete(self) -> None:
        for value in ("[redacted]", "/x/[redacted card number]/y", "aaa[12 more characters]"):
            for arguments in ({"path": value}, {"path": ["/a", value]}, {"path": {"a": value}}, {value: 1}):
                self.assertIn("redacted or cut", self.why(arguments), arguments)
        self.assertEqual(self.why({"path": "/a/[12 more characters] b"}), "")

    @given(st.text(max_size=300), st.integers(0, 100))
    def test_what_the_redactor_cuts_is_incomplete(self, text: str, limit: int) -> None:
        written = Redactor().value({"a": [text]}, limit)
        self.assertEqual(bool(incomplete(written)), bool(incomplete(text)) or len(text) > limit)

    def test_paths_as_the_agent_wrote_them(self) -> None:
        for path in ("notes.txt", "/workspace/notes.txt", "~/x", "/a/../b", "/a/", "//a"):
            self.assertIn("as the agent wrote it", self.why({"path": path}), path)
        for by in ("missing-annotation", "structural-unresolvable-path"):
            self.assertIn("as the agent wrote it", self.why({"path": "/a"}, by), by)

    def test_a_tool_that_still_has_no_annotation_needs_no_files(self) -> None:
        self.assertEqual(self.why({"path": "x"}, "missing-annotation", "no_such_tool"), "")

    def test_a_directory_around_a_protected_path(self) -> None:
        arguments = {"path": self.world.home, "content": ""}
        self.assertIn("file existed before", self.why(arguments, tool="write_file", protected=["$HOME/vault"]))
        self.assertEqual(self.why(arguments, tool="write_file"), "")

    def test_another_case_of_a_protected_name(self) -> None:
        arguments = {"path": f"{self.world.home}/VAULT/x"}
        self.assertIn("differ in case", self.why(arguments, protected=["$HOME/vault"]))

    def test_a_session_without_workspace(self) -> None:
        report = ReplayReport()
        calls = calls_of([call_record("filesystem", "read_text_file", {"path": "/a"}, "deny", "x")])
        replay(report, "1", calls, lambda _: self.engine(self.world.workspace, [], {}))
        self.assertEqual(dict(report.undecided), {"the workspace": 1})


class RecordTests(SynchronousTestCase):
    """:class:`SessionRecords`"""

    JSON = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2))
    FIELDS = st.sampled_from(["kind", "callId", "time", "server", "tool", "decision", "rule", "arguments", "workspace"])

    @given(st.lists(st.dictionaries(FIELDS, JSON | st.sampled_from(["call", "session", {}]), max_size=9), max_size=4))
    def test_any_records_give_calls_or_nothing(self, records: list[dict[str, Any]]) -> None:
        for call in calls_of(records):
            self.assertIsInstance(call, RecordedCall)
            self.assertIsInstance(call.workspace, str)

    def test_the_real_workspace_of_the_policys_record_counts(self) -> None:
        record = call_record("s", "t", {}, "deny", "r")
        places = [{"kind": "session", "workspace": "/link"}, {"kind": "policy", "workspace": "/real"}]
        self.assertEqual([call.workspace for call in calls_of([*places, record])], ["/real"])
        older = [{"kind": "session", "workspace": "/w"}, {"kind": "policy", "version": "1"}]
        self.assertEqual([call.workspace for call in calls_of([*older, record])], ["/w"])
