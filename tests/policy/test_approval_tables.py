"""The tables of a policy that decide about the desktop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.check import check
from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.loading import default_annotations, load_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.rules import Policy
from ironcurtain.policy.verdict import ToolCall, Verdict
from tests.policy.worlds import World

GENERAL = """
[[rules]]
name = "desktop"
if = { server = ["desktop"] }
then = "escalate"
"""
HANDS = ("press", "set_value", "select", "click", "drag", "scroll", "key", "type", "window", "open")


class TableCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World.make({"files": {}})
        self.addCleanup(self.world.remove)

    def policy(self, text: str) -> Policy:
        path = Path(self.world.home, "policy.toml")
        path.write_text(text)
        return load_policy(path)

    def engine(self, text: str) -> PolicyEngine:
        return PolicyEngine(
            self.policy(text),
            default_annotations(),
            paths=PathMap(self.world.workspace),
            home=self.world.home,
            servers={"desktop": ServerBounds()},
        )

    def ask(self, text: str, tool: str, /, **arguments: Any) -> Verdict:
        schema = {"type": "object", "properties": {name: {} for name in arguments}}
        return self.engine(text).evaluate(ToolCall("desktop", tool, arguments), schema)

    def decisions(self, text: str, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        return [self.ask(text, tool, **arguments).decision.value for tool, arguments in calls]


class VisionTests(TableCase):
    def test_each_field_decides_about_its_tool(self) -> None:
        text = '[approval.vision]\nscreenshot = "deny"\nui_tree = "allow"\nwindows = "allow"'
        for tool, arguments, decision, rule in (
            ("screenshot", {"app": "firefox"}, "deny", "approval.vision.screenshot"),
            ("screenshot", {"app": "screen"}, "deny", "approval.vision.screenshot"),
            ("tree", {"app": "firefox"}, "allow", "approval.vision.ui_tree"),
            ("windows", {}, "allow", "approval.vision.windows"),
            ("read_text", {"app": "firefox"}, "escalate", "approval.vision.ocr"),
            ("clipboard_read", {}, "escalate", "approval.vision.mode"),
        ):
            verdict = self.ask(text, tool, **arguments)
            self.assertEqual((verdict.decision, verdict.rule), (decision, rule), tool)

    def test_what_a_field_leaves_open_is_the_mode_or_the_default(self) -> None:
        call = ("screenshot", {"app": "x"})
        self.assertEqual(self.decisions("[approval.vision]\n", call), ["escalate"])
        self.assertEqual(self.decisions('[approval.vision]\nmode = "allow"', call), ["allow"])
        self.assertEqual(self.decisions('[approval]\ndefault = "deny"\n[approval.vision]\n', call), ["deny"])

    def test_without_a_table_the_written_rules_decide(self) -> None:
        self.assertEqual(self.ask('[approval]\ndefault = "allow"', "windows").decision, "escalate")
        for tool in ("status", "windows", "speak"):
            self.assertEqual(self.ask("[approval.ui]", tool).rule, "structural-no-rule", tool)
        self.assertEqual(self.ask(f"[approval.ui]\n{GENERAL}", "windows").rule, "desktop")

    def test_table_precedes_the_written_rules(self) -> None:
        verdict = self.ask(f'[approval.vision]\nwindows = "allow"\n{GENERAL}', "windows")
        self.assertEqual((verdict.decision, verdict.rule), ("allow", "approval.vision.windows"))

    def test_reason_of_a_question_says_what_the_model_would_get(self) -> None:
        reason = self.ask("[approval.vision]\n", "tree", app="firefox").reason
        self.assertEqual(reason, "the agent's model would get the elements of windows and their texts")


class AudioTests(TableCase):
    text = (
        '[approval.audio]\nmicrophone = "deny"\nsystem_audio = "allow"\napplication_audio = "ask"\n'
        'speech_to_text = "allow"'
    )

    def test_source_decides(self) -> None:
        calls = [("listen", {"source": each, "seconds": 5}) for each in ("microphone", "system")]
        self.assertEqual(self.decisions(self.text, *calls), ["deny", "allow"])
        of_app = ("listen", {"source": "app", "app": "firefox"})
        self.assertEqual(self.decisions(self.text, of_app), ["escalate"])
        allowed = self.text.replace('"ask"', '"allow"')
        self.assertEqual(self.decisions(allowed, of_app), ["allow"])

    def test_unknown_source_is_judged_as_the_strictest(self) -> None:
        calls: tuple[tuple[str, dict[str, Any]], ...]
        calls = (("listen", {}), ("listen", {"source": "room"}), ("listen", {"source": ["system", "microphone"]}))
        self.assertEqual(self.decisions(self.text, *calls), ["deny"] * 3)

    def test_what_may_not_be_written_down_is_not_heard(self) -> None:
        text = '[approval.audio]\nmode = "allow"\nspeech_to_text = "deny"'
        self.assertEqual(
            self.decisions(text, ("listen", {"source": "system"}), ("speak", {"text": "x"})), ["deny", "allow"]
        )

    def test_microphone_is_never_allowed_by_what_is_said_of_other_sources(self) -> None:
        for app in ("", "firefox", "microphone"):
            self.assertEqual(self.ask(self.text, "listen", source="microphone", app=app).decision, "deny")


class UiTests(TableCase):
    text = '[approval.ui]\nmode = "ask"\nallow_apps = ["Mousepad", "firefox"]'

    def test_listed_applications_are_operated_without_asking(self) -> None:
        for tool in HANDS:
            for app, decision in (("mousepad", "allow"), ("Firefox", "allow"), ("thunar", "escalate")):
                self.assertEqual(self.ask(self.text, tool, app=app).decision, decision, f"{tool} {app}")

    def test_other_hands_follow_the_mode(self) -> None:
        calls = (("clipboard_write", {"text": "x"}), ("notify", {"title": "x"}))
        self.assertEqual(self.decisions(self.text, *calls), ["escalate"] * 2)
        self.assertEqual(self.decisions('[approval.ui]\nmode = "deny"', *calls), ["deny"] * 2)

    def test_list_limits_a_mode_that_allows(self) -> None:
        text = '[approval.ui]\nmode = "allow"\n'
        call = ("open", {"app": "thunar"})
        self.assertEqual(self.decisions(text, call), ["allow"])
        self.assertEqual(self.decisions(f'{text}allow_apps = ["mousepad"]', call), ["escalate"])

    def test_list_allows_no_looking_and_no_terminal(self) -> None:
        self.assertEqual(self.ask(f"{self.text}\n{GENERAL}", "tree", app="mousepad").rule, "desktop")
        self.assertEqual(self.ask(self.text, "type", app="firefox", text="x", terminal=True).decision, "escalate")

    def test_list_of_the_policy_can_be_named(self) -> None:
        text = '[approval.ui]\nallow_apps = ["@editors"]\n[lists.editors]\nvalues = ["mousepad"]'
        self.assertEqual(self.ask(text, "open", app="mousepad").decision, "allow")


class CheckTests(TableCase):
    def test_mistake_names_its_line(self) -> None:
        for text, words in (
            ("[approval.vision]\nscreenshot = true", ":2: approval.vision.screenshot: "),
            ("[approval.audio]\nmikrophone = 'ask'", ":2: approval.audio.mikrophone: there is no such setting"),
            ('[approval.ui]\nallow_apps = "x"', ":2: approval.ui.allow_apps: "),
            ('[approval]\ndefault = "no"\n[approval.ui]', ":2: approval.default: "),
        ):
            with self.assertRaises(ConfigurationError) as caught:
                self.policy(text)
            self.assertIn(words, str(caught.exception))

    def test_written_rule_that_a_table_shadows_is_reported(self) -> None:
        rule = 'name = "see"\nif = { server = ["desktop"], tool = ["windows"] }\nthen = "deny"'
        [finding] = check(self.policy(f"[approval.vision]\n[[rules]]\n{rule}"), default_annotations())
        self.assertEqual((finding.code, finding.rule, finding.place), ("shadowed", "see", ("rules", 0)))
        self.assertIn("approval.vision.windows", finding.message)

    def test_missing_list_of_a_table_is_reported(self) -> None:
        found = check(self.policy('[approval.ui]\nallow_apps = ["@nowhere"]'), default_annotations())
        self.assertEqual([each.code for each in found if each.severity == "error"], ["missing-list", "empty-list"])
        self.assertEqual(found[0].place, ("approval", "ui", "allow_apps"))

    def test_tables_are_right_and_change_the_version(self) -> None:
        text = "[approval.vision]\n[approval.audio]\n[approval.ui]\nallow_apps = ['x']"
        self.assertEqual(check(self.policy(text), default_annotations()), [])
        self.assertNotEqual(self.engine(text).policy_version, self.engine("").policy_version)
