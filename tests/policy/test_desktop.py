"""Calls of the server for the desktop: which applications rules name, and input to terminals."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.rules import Conditions, ListCondition, Policy, Rule
from ironcurtain.policy.verdict import Automatic, ToolCall, Verdict
from tests.policy.worlds import World

_EDITOR = ListCondition(("app",), ("mousepad",), "identifiers")
_OPEN = Policy((Rule("editor", Conditions(server=("desktop",), lists=(_EDITOR,)), "allow"),))


class DesktopTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World.make({"files": {}})
        self.addCleanup(self.world.remove)

    def ask(self, tool: str, policy: Policy = _OPEN, **arguments: Any) -> Verdict:
        engine = PolicyEngine(
            policy,
            default_annotations(),
            paths=PathMap(self.world.workspace),
            home=self.world.home,
            servers={"desktop": ServerBounds()},
        )
        schema = {"type": "object", "properties": {name: {} for name in arguments}}
        return engine.evaluate(ToolCall("desktop", tool, arguments), schema)

    def test_a_list_of_applications_opens_only_those(self) -> None:
        for app, decision in (("mousepad", "allow"), ("Mousepad", "allow"), ("xterm", "deny"), ("mousepad2", "deny")):
            self.assertEqual(self.ask("tree", app=app).decision, decision, app)
        self.assertEqual(self.ask("screenshot", app="screen").decision, "deny")

    def test_a_call_without_an_application_is_not_opened_by_a_list(self) -> None:
        for tool in ("windows", "listen", "speak", "clipboard_read"):
            self.assertEqual(self.ask(tool).decision, "deny", tool)

    def test_the_application_and_the_words_are_shown(self) -> None:
        verdict = self.ask("press", app="mousepad", ref="1", role="button", name="Save")
        self.assertEqual([(each.role, each.value) for each in verdict.resources], [("app", "mousepad")])

    def test_a_rule_can_name_what_is_typed(self) -> None:
        never = Rule("no-sudo", Conditions(lists=(ListCondition(("ui-text",), ("sudo",), "identifiers"),)), "deny")
        policy = Policy((never, *_OPEN.rules))
        self.assertEqual(self.ask("type", policy, app="mousepad", text="sudo").rule, "no-sudo")
        self.assertEqual(self.ask("type", policy, app="mousepad", text="hello").decision, "allow")

    def test_input_to_a_terminal_is_asked_whatever_the_rules_allow(self) -> None:
        for tool in ("type", "key", "click", "press", "set_value"):
            for said in (True, 1, "yes"):
                verdict = self.ask(tool, app="mousepad", terminal=said)
                self.assertEqual((verdict.decision, verdict.rule), ("escalate", "structural-terminal-input"), tool)
                self.assertIs(verdict.automatic, Automatic.NEVER)
        self.assertEqual(self.ask("type", app="mousepad", text="x", terminal=False).decision, "allow")

    def test_input_to_a_terminal_that_a_rule_denies_stays_denied(self) -> None:
        self.assertEqual(self.ask("type", app="xterm", text="x", terminal=True).decision, "deny")

    def test_the_default_policy_asks_about_all_but_the_status(self) -> None:
        self.assertEqual(self.ask("status", default_policy()).decision, "allow")
        for tool, rule in (("windows", "look-and-listen"), ("open", "operate-the-desktop")):
            self.assertEqual(self.ask(tool, default_policy(), app="x").rule, rule)
        self.assertEqual(self.ask("speak", default_policy(), text="approve").rule, "operate-the-desktop")
