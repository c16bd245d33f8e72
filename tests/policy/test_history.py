"""Conditions on what happened before: what they mean, and that they loosen nothing by themselves."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.check import check
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.files import AssumedFiles
from ironcurtain.policy.history import CREATED_LIMIT, NO_HISTORY, RATE_LIMIT, CallHistory
from ironcurtain.policy.loading import compiled_policy, tool_annotations
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.recorded import SessionRecords
from ironcurtain.policy.verdict import ToolCall, Trace, Verdict
from tests.policy.test_replay import call_record
from tests.policy.worlds import CASES, rule

HOME = "/home/someone"
ANNOTATIONS = tool_annotations(CASES["annotations"])
FETCHED = NO_HISTORY.made("fetch", "http_fetch", 5.0)


def engine(*rules: dict[str, Any]) -> PolicyEngine:
    """:returns: an engine over one existing file ``/workspace/old``."""
    files = AssumedFiles({"/workspace/old": "", "/else/x": ""})
    policy = compiled_policy({"rules": list(rules)})
    return PolicyEngine(policy, ANNOTATIONS, paths=PathMap("/workspace"), home=HOME, files=files)


def judged(
    judge: PolicyEngine, tool: str, history: CallHistory = NO_HISTORY, trace: Trace | None = None, **arguments: Any
) -> Verdict:
    """:returns: the verdict on a call."""
    server, _, name = tool.partition(".")
    return judge.evaluate_assumed(ToolCall(server, name, arguments), history=history, trace=trace)


class AfterTests(SynchronousTestCase):
    """``after``"""

    judge = engine(rule("later", "escalate", server=["filesystem"], after={"server": ["fetch"]}))

    def write(self, history: CallHistory, path: str = "a") -> Verdict:
        """:returns: the verdict on a write."""
        return judged(self.judge, "filesystem.write_file", history, path=path, content="")

    def test_it_holds_after_such_a_call_only(self) -> None:
        self.assertEqual(self.write(NO_HISTORY).rule, "structural-sandbox-allow")
        self.assertEqual(self.write(NO_HISTORY.made("git", "git_push", 1.0)).decision, "allow")
        self.assertEqual((self.write(FETCHED).decision, self.write(FETCHED).rule), ("escalate", "later"))

    def test_a_person_sees_which_fact_held(self) -> None:
        trace = Trace()
        judged(self.judge, "filesystem.write_file", FETCHED, trace, path="a", content="")
        self.assertIn(
            ("later", "escalate", "after fetch.http_fetch"), [(s.check, s.outcome, s.detail) for s in trace.steps]
        )

    def test_a_rule_without_memory_does_not_limit_the_workspace(self) -> None:
        judge = engine(rule("never", "deny", server=["filesystem"]))
        self.assertEqual(judged(judge, "filesystem.write_file", FETCHED, path="a", content="").decision, "allow")

    def test_paths_inside_and_outside_in_one_call(self) -> None:
        judge = engine(
            rule("later", "deny", after={"server": ["fetch"]}, paths={"roles": ["read-path"], "within": "/workspace"}),
            rule("rest", "allow", server=["filesystem"]),
        )
        for history, decision in ((NO_HISTORY, "allow"), (FETCHED, "deny")):
            paths = ["/workspace/a", "/else/x"]
            found = judged(judge, "filesystem.read_multiple_files", history, paths=paths)
            self.assertEqual(found.decision, decision)

    def test_mistakes(self) -> None:
        wrong: dict[str, Any]
        for wrong in ({}, {"sever": ["a"]}):
            with self.assertRaises(ConfigurationError):
                engine(rule("a", "deny", after=wrong))
        for wrong in ({"calls": 0, "seconds": 1}, {"calls": RATE_LIMIT + 1, "seconds": 1}, {"calls": 1, "seconds": 0}):
            with self.assertRaises(ConfigurationError):
                engine(rule("a", "deny", rate=wrong))


class RateTests(SynchronousTestCase):
    """``rate``"""

    judge = engine(rule("slow", "deny", server=["filesystem"], tool=["write_file"], rate={"calls": 2, "seconds": 60}))

    def test_calls_of_the_rules_tools_within_the_time_count(self) -> None:
        history = NO_HISTORY.made("filesystem", "read_text_file", 9.0).made("filesystem", "write_file", 10.0)
        for more, now, decision in (((), 11.0, "allow"), ((11.0,), 12.0, "deny"), ((11.0,), 70.0, "allow")):
            past = history
            for time in more:
                past = past.made("filesystem", "write_file", time)
            found = judged(self.judge, "filesystem.write_file", past.at(now), path="a", content="")
            self.assertEqual(found.decision, decision, (more, now))

    def test_a_bounded_number_is_remembered(self) -> None:
        history = NO_HISTORY
        for time in range(RATE_LIMIT + 5):
            history = history.made("a", "b", float(time))
        self.assertEqual(len(history.uses["a", "b"]), RATE_LIMIT)
        self.assertEqual(history.uses["a", "b"][-1], RATE_LIMIT + 4)


class CreatedTests(SynchronousTestCase):
    """``created``"""

    judge = engine(
        rule(
            "theirs",
            "escalate",
            paths={"roles": ["write-path", "delete-path"], "within": "/workspace", "created": False},
        )
    )

    def decision(self, path: str, history: CallHistory = NO_HISTORY) -> str:
        """:returns: the decision on a write."""
        return judged(self.judge, "filesystem.write_file", history, path=path, content="").decision

    def test_a_file_of_a_person_is_asked_and_a_new_one_is_not(self) -> None:
        self.assertEqual(self.decision("old"), "escalate")
        self.assertEqual(self.decision("new"), "allow")
        self.assertEqual(self.decision("old", NO_HISTORY.changed(["/workspace/old"], [])), "allow")

    def test_a_file_that_is_deleted_is_forgotten(self) -> None:
        history = NO_HISTORY.changed(["/a", "/b"], []).changed([], ["/a"])
        self.assertEqual(history.created, {"/b"})

    def test_moving_a_persons_file_does_not_make_it_the_agents(self) -> None:
        self.assertEqual(NO_HISTORY.changed(["/new"], ["/theirs"]).created, frozenset())
        self.assertEqual(NO_HISTORY.changed(["/a"], []).changed(["/new"], ["/a"]).created, {"/new"})

    def test_what_is_not_remembered_is_not_created(self) -> None:
        history = NO_HISTORY.changed((f"/{n}" for n in range(CREATED_LIMIT)), []).changed(["/more"], [])
        self.assertNotIn("/more", history.created)


CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "server": st.sampled_from([["filesystem"], ["fetch"]]),
        "tool": st.sampled_from([["write_file"], ["move_file"], ["http_fetch"]]),
        "paths": st.builds(
            lambda role, within: {"roles": [role], "within": within},
            st.sampled_from(["read-path", "write-path", "delete-path"]),
            st.sampled_from(["/workspace", "/else", "/"]),
        ),
    },
)
AFTER = st.sampled_from([{"server": ["fetch"]}, {"tool": ["write_file"]}])
RATE = st.builds(lambda calls: {"calls": calls, "seconds": 9}, st.integers(1, 3))
MEMORIES = st.fixed_dictionaries({"after": AFTER}, optional={"rate": RATE}) | st.fixed_dictionaries({"rate": RATE})
HISTORIES = st.builds(
    lambda made, created: _history(made, created),
    st.lists(st.sampled_from([("fetch", "http_fetch"), ("filesystem", "write_file")]), max_size=5),
    st.lists(st.sampled_from(["/workspace/old", "/else/x"])),
)
CALLS = st.sampled_from(
    [
        ("filesystem.write_file", {"path": "/workspace/old", "content": ""}),
        ("filesystem.write_file", {"path": "/else/x", "content": ""}),
        ("filesystem.move_file", {"source": "/workspace/old", "destination": "/else/y"}),
        ("filesystem.read_multiple_files", {"paths": ["/workspace/old", "/else/x"]}),
        ("fetch.http_fetch", {"url": "https://example.org/"}),
    ]
)
PLAIN = st.builds(
    lambda conditions, then: rule("plain", then, **conditions),
    CONDITIONS,
    st.sampled_from(["allow", "escalate", "deny"]),
)
LIMITS = st.builds(
    lambda conditions, memory, then: rule("limit", then, **conditions, **memory),
    CONDITIONS,
    MEMORIES,
    st.sampled_from(["escalate", "deny"]),
)


def _history(made: list[tuple[str, str]], created: list[str]) -> CallHistory:
    history = NO_HISTORY.changed(created, [])
    for server, tool in made:
        history = history.made(server, tool, 1.0)
    return history.at(2.0)


class SafetyTests(SynchronousTestCase):
    """What a history can change."""

    @settings(deadline=None)
    @given(st.lists(PLAIN, max_size=4), HISTORIES, CALLS)
    def test_rules_without_memory_judge_as_before(
        self, rules: list[dict[str, Any]], history: CallHistory, call: tuple[str, dict[str, Any]]
    ) -> None:
        judge = engine(*rules)
        self.assertFalse(judge.remembers)
        self.assertEqual(judged(judge, call[0], history, **call[1]), judged(judge, call[0], **call[1]))

    @settings(deadline=None)
    @given(st.lists(PLAIN | LIMITS, max_size=5), HISTORIES, CALLS)
    def test_what_happened_before_allows_nothing_by_itself(
        self, rules: list[dict[str, Any]], history: CallHistory, call: tuple[str, dict[str, Any]]
    ) -> None:
        judge = engine(*rules)
        if judged(judge, call[0], history, **call[1]).decision == "allow":
            self.assertEqual(judged(judge, call[0], **call[1]).decision, "allow")

    def test_a_rule_that_says_so_allows(self) -> None:
        judge = engine(rule("then", "allow", server=["filesystem"], after={"server": ["fetch"]}))
        call: tuple[str, dict[str, Any]] = ("filesystem.read_text_file", {"path": "/else/x"})
        self.assertEqual(judged(judge, call[0], **call[1]).decision, "deny")
        self.assertEqual(judged(judge, call[0], FETCHED, **call[1]).decision, "allow")

    def test_a_rule_with_memory_shadows_no_later_rule(self) -> None:
        rules = [
            rule("a", "escalate", after={"server": ["fetch"]}),
            rule("b", "allow", server=["fetch"], tool=["http_fetch"]),
        ]
        self.assertEqual(check(compiled_policy({"rules": rules}), ANNOTATIONS), [])


class RecordTests(SynchronousTestCase):
    """The history in an audit log."""

    def test_calls_that_were_made_and_files_that_they_created(self) -> None:
        def write(call_id: str, path: str, decision: str, **more: Any) -> dict[str, Any]:
            return call_record("filesystem", "write_file", {"path": path}, decision, "r", **{"callId": call_id, **more})

        records = [
            write("1", "/a", "allow", creates=["/a"]),
            write("2", "/b", "escalate", creates=["/b"]),
            write("3", "/c", "escalate", creates=["/c"]),
            write("4", "/d", "deny", creates=["/d"]),
            {"kind": "decision", "callId": "3", "outcome": "denied"},
            {"kind": "decision", "callId": "2", "outcome": "approved", "time": "2026-01-01T00:00:09.500Z"},
            {"kind": "outcome", "callId": "1", "status": "success"},
            {"kind": "outcome", "callId": "2", "status": "error"},
            {"kind": "outcome", "callId": "4", "status": "denied"},
        ]
        followed = SessionRecords(ANNOTATIONS)
        calls = list(followed.calls(records))
        self.assertEqual([call.history.uses == {} for call in calls], [True, False, False, False])
        times = followed.history.uses["filesystem", "write_file"]
        self.assertEqual((len(times), times[1] - times[0]), (2, 9.5))
        self.assertEqual((followed.history.created, followed.history.complete), ({"/a"}, True))

    def test_moves_and_older_records(self) -> None:
        arguments = {"source": "/a", "destination": "/b"}
        move = call_record("filesystem", "move_file", arguments, "allow", "r", creates=["/b"])
        end = {"kind": "outcome", "callId": "c", "status": "success"}
        followed = SessionRecords(ANNOTATIONS)
        list(followed.calls([move, end]))
        self.assertEqual((followed.history.created, followed.history.complete), (frozenset(), True))
        del move["creates"]
        list(followed.calls([move, end]))
        self.assertFalse(followed.history.complete)

    def test_another_clock(self) -> None:
        history = FETCHED.at(6.0).shifted(-100.0)
        self.assertEqual((history.now, history.uses["fetch", "http_fetch"]), (-94.0, (-95.0,)))
