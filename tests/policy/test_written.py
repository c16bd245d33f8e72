"""A policy file to which annotations and rules are added."""

from __future__ import annotations

import tomllib

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.annotations import Annotations, ServerAnnotations, ToolAnnotation
from ironcurtain.policy.loading import DEFAULT_POLICY
from ironcurtain.policy.rules import Conditions, Rule
from ironcurtain.policy.written import extended

TOOL = ToolAnnotation("read.it", {"path": ("read-path",)})
ADDED = Annotations({"my-notes": ServerAnnotations((TOOL,))})
RULE = Rule("ask", Conditions(server=("my-notes",)), "escalate", "because")


class ExtendedTests(SynchronousTestCase):
    """What is there stays as it is."""

    def test_text_is_the_beginning_of_the_new_one(self) -> None:
        for text in (DEFAULT_POLICY.read_text(), "", "# mine\n[tools.my-notes.other]\nargs = {}"):
            new = extended("f", text, ADDED, [RULE])
            self.assertTrue(new.startswith(text.rstrip("\n")))
            parsed = tomllib.loads(new)
            self.assertEqual(parsed["rules"][-1]["name"], "ask")
            self.assertEqual(parsed["tools"]["my-notes"]["read.it"]["args"], {"path": ["read-path"]})

    def test_nothing_to_add_changes_nothing(self) -> None:
        self.assertEqual(extended("f", "# mine\n\n", Annotations(), []), "# mine\n\n")

    def test_files_in_another_form_are_refused(self) -> None:
        for text in ("rules = []\n", "tools = { x = {} }\n", '[tools.my-notes."read.it"]\nargs = {}\n'):
            with self.assertRaises(ConfigurationError, msg=text):
                extended("f", text, ADDED, [RULE])
