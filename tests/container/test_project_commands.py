from __future__ import annotations

from ironcurtain.container.project_commands import CommandsProposal, ProjectCommands, shown_commands
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.container_section import ContainerSettings
from tests.container.test_project_choices import USED, Case

FILE = ".devcontainer.json"


class CommandsTests(Case):
    def setUp(self) -> None:
        super().setUp()
        self.write(
            FILE, '{"image": "node:22", "postCreateCommand": "npm ci", "postStartCommand": ["a", "b\\u001b[2J"]}'
        )

    def propose(self, settings: ContainerSettings | None = None) -> CommandsProposal | None:
        """:returns: what the project wants to be run, as a new process has it."""
        return ProjectCommands(self.home, self.choices(settings)).propose(str(self.project))

    def proposal(self, settings: ContainerSettings | None = None) -> CommandsProposal:
        """:returns: what it wants, which is something."""
        proposal = self.propose(settings)
        assert proposal is not None
        return proposal

    def say(self, agreed: bool) -> None:
        """Answer the question about them."""
        ProjectCommands(self.home, self.choices()).answer(self.proposal(), agreed=agreed)

    def test_nothing_runs_before_a_person_agreed_whatever_the_settings_say(self) -> None:
        for settings in (None, USED):
            self.assertIsNone(self.proposal(settings).known)
        self.assertIn("decide, with: ironcurtain images project", self.proposal().refusal)
        self.answer(True)  # about the image
        self.assertIsNone(self.proposal().known)

    def test_answer_holds_until_a_command_changes(self) -> None:
        self.say(True)
        self.assertEqual((self.proposal().known, self.proposal().refusal), (True, ""))
        self.write(FILE, '{"image": "other", "postStartCommand": ["a", "b\\u001b[2J"], "postCreateCommand": "npm ci"}')
        self.assertTrue(self.proposal().known)
        for text in (
            '"postCreateCommand": "npm ci; evil"',
            '"postStartCommand": "npm ci"',
            '"onCreateCommand": "npm ci"',
        ):
            self.write(FILE, f'{{"image": "node:22", {text}}}')
            self.assertIsNone(self.proposal().known)
        self.say(False)
        self.assertIn("as you decided", self.proposal().refusal)

    def test_both_answers_about_a_project_are_kept(self) -> None:
        self.say(True)
        self.answer(True)
        self.assertEqual((self.choose().source, self.proposal().known), ("node:22", True))
        self.say(False)
        self.assertEqual((self.choose().source, self.proposal().known), ("node:22", False))

    def test_question_shows_them_whole_and_escaped(self) -> None:
        self.write(
            FILE, '{"image": "a", "postCreateCommand": {"x": "one\\n  two\\u202e"}, "postStartCommand": ["a b"]}'
        )
        shown = list(shown_commands(self.proposal()))
        where = shown.index("  postCreateCommand x, once a session:")
        self.assertEqual(shown[where + 1 : where + 3], ["    one", "      two\\u202e"])
        self.assertIn("  postStartCommand, at each start:", shown)
        self.assertEqual(shown[-2:], ['    ["a b"]', f"  digest: {self.proposal().digest[:16]}"])
        self.assertIn(str(self.project), shown[0])

    def test_project_without_commands_or_that_is_not_asked_wants_none(self) -> None:
        self.assertIsNone(self.propose(ContainerSettings(devcontainer=False)))
        self.assertIsNone(self.propose(ContainerSettings(base="my-image")))
        self.write(FILE, '{"image": "a"}')
        self.assertIsNone(self.propose())

    def test_wrong_file_is_an_error(self) -> None:
        self.write(FILE, '{"image": "a", "postCreateCommand": 7}')
        self.assertRaises(ConfigurationError, self.propose)
