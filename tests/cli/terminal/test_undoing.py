"""An undo in the terminal of a session: only of what was shown there."""

from __future__ import annotations

from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.project.changes import Change
from ironcurtain.session.snapshots import LeftPath
from tests.cli.terminal.frontends import FrontEndCase

ASKED = "Undo this in /workspace? Then type /undo yes"


class UndoingTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[int] = self.begin(self.front.interactive())

    def test_it_is_shown_and_done_when_it_is_confirmed(self) -> None:
        self.type("/undo 1")
        self.assertEqual(self.surface.printed[-3:], ["+agent", "Undo restores 1 file as before turn 1.", ASKED])
        self.assertEqual((self.asked, self.session.undone), ([1], []))
        self.type("/undo yes")
        self.assertEqual((self.asked, self.session.undone), ([1, 1], [4]))
        self.assertIn("Restored 1, removed 2.", self.surface.printed)

    def test_it_is_confirmed_once(self) -> None:
        self.type("/undo", "/undo yes", "/undo yes")
        self.assertEqual(self.session.undone, [4])
        self.assertIn("type /undo first: it shows what would be undone", self.surface.text)

    def test_nothing_is_confirmed_that_was_not_shown(self) -> None:
        self.type("/undo yes")
        self.proposal = replace(self.proposal, needed=False)
        self.type("/undo", "/undo yes")
        self.assertEqual(self.session.undone, [])
        self.assertNotIn(ASKED, self.surface.printed)

    def test_what_was_typed_before_it_was_shown_confirms_nothing(self) -> None:
        began = self.clock.seconds()
        self.type("/undo")
        assert self.surface.listener is not None
        self.surface.listener.typed("/undo yes", began)
        self.draw()
        self.assertEqual(self.session.undone, [])
        self.assertIn("it was shown while you were typing", self.surface.text)
        self.type("/undo yes")
        self.assertEqual(self.session.undone, [4])

    def test_a_workspace_that_has_changed_meanwhile_is_shown_and_asked_about_again(self) -> None:
        self.type("/undo")
        self.proposal = replace(self.proposal, changes=(Change("a", "added", None, None),), lines=("+more",))
        self.type("/undo yes")
        self.assertEqual(self.session.undone, [])
        self.assertEqual(self.surface.printed[-3:], ["The workspace has changed meanwhile. Now:", "+more", ASKED])
        self.type("/undo yes")
        self.assertEqual(self.session.undone, [4])

    def test_a_later_message_needs_another_look(self) -> None:
        self.type("/undo", "hello")
        self.type("/undo yes")
        self.assertIn("the agent is working", self.surface.text)
        self.session.reply("done")
        self.proposal = replace(self.proposal, snapshot=5)
        self.type("/undo yes")
        self.assertEqual(self.session.undone, [])
        self.type("/undo yes")
        self.assertEqual(self.session.undone, [5])

    def test_what_cannot_be_restored_is_named(self) -> None:
        self.session.left = (LeftPath("a\x1b[2J", "Permission denied"),)
        self.type("/undo", "/undo yes")
        self.assertIn("Could not be restored: a\\x1b[2J: Permission denied", self.surface.printed)

    def test_what_is_found_after_the_person_left_is_dropped(self) -> None:
        self.proposing = Deferred()
        self.type("/undo", "/quit")
        self.draw()
        self.assertEqual(self.successResultOf(self.done), 0)
        self.proposing.callback(None)
        self.assertNotIn("+agent", self.surface.printed)
        self.clean()


class PlainUndoingTests(FrontEndCase):
    live = False

    def test_lines_of_a_pipe_wait_until_it_is_shown(self) -> None:
        done = self.begin(self.front.interactive())
        self.proposing = Deferred()
        self.type("/undo", "/undo yes", "/quit")
        self.assertEqual(self.session.undone, [])
        self.proposing.callback(None)
        self.draw()
        self.assertEqual((self.session.undone, self.successResultOf(done)), ([4], 0))
        self.assertLess(self.surface.printed.index(ASKED), self.surface.printed.index("Restored 1, removed 2."))
