"""The whole console on a terminal in memory: its screens, keys, a slow viewer, and the farewell."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import Outcome
from tests.console.doubles import NOW, GivenSource, Setup, escalation, permission, session

TIME = f"{datetime.fromtimestamp(NOW):%H:%M:%S}"
EDIT = escalation(
    2,
    {"path": "/home/ada/x.py", "edits": [{"oldText": "one\ntwo", "newText": "one\n2"}]},
    tool="edit_file",
    reason="editing \x1b[31mhere\u202e needs a person",
)

AT_80_24 = f"""\
 IronCurtain  1 session  2 waiting                                ada  {TIME}
── SESSIONS 1 ──────────────────────────────────────────────────────────────────
· 1  processing   3 min  builtin: mend the tests
── WAITING 2 ───────────────────────────────────────────────────────────────────
  1  s1  filesystem.read_text_file  path=/home/ada/file1.txt                4:59
> 2  s1  filesystem.edit_file       path=/home/ada/x.py edits=[{{"oldText":… 4:59
── HISTORY ─────────────────────────────────────────────────────────────────────
  no decisions yet
── ESCALATION 2, 4:59 left ─────────────────────────────────────────────────────
 filesystem.edit_file
 agent  session 1, builtin: mend the tests
 rule   outside-the-workspace: editing \\x1b[31mhere\\u202e needs a person
 undo   cannot be undone: its effects are not known
 path = /home/ada/x.py
 edits = 1 change (43 characters, below)
 digest 0000000000000000 over all 77 characters
 edits: 43 characters
   change 1 of 1
   one
 - two
 + 2

 Approve 2, filesystem.edit_file? y/Esc
 y yes  Esc no  / command  …"""

AT_40_15 = f"""\
 IronCurtain  1 session  2 wa… {TIME}
── WAITING 2 ───────────────────────────
  1  s1  read_text_fi…  path=…1.txt 4:59
> 2  s1  edit_file      path=…/x.py 4:59
── ESCALATION 2, 4:59 left, 8 below ────
 filesystem.edit_file
 agent  session 1, builtin: mend the te…
 rule   outside-the-workspace: editing
        \\x1b[31mhere\\u202e needs a pers…
 undo   cannot be undone: its effects a…
 path = /home/ada/x.py
 edits = 1 change (43 characters, below)

 a approve  d deny  Tab lists  PgDn more
 / command  ? help  q quit"""


SCOPE = "filesystem.edit_file in /home/ada and below\x1b[2J"

WHILE_IT_ASKS_TO_KEEP = (
    AT_80_24.replace(
        " Approve 2, filesystem.edit_file? y/Esc",
        " Approve 2, filesystem.edit_file, and stop asking in session 1 about\n"
        "   filesystem.edit_file in /home/ada and below\\x1b[2J\n"
        " y/Esc?",
    )
    .replace("left ───────────", "left, 1 below ──")
    .replace(" + 2\n\n", "")
    .replace("Esc no  / command", "Esc no  PgDn more  / command")
)


class ScreenTests(SynchronousTestCase):
    """The same console on terminals of three sizes."""

    def test_80_by_24_while_it_asks(self) -> None:
        self.assertEqual(Setup(80, 24, escalation(1), EDIT).type("ja"), AT_80_24)

    def test_40_by_15(self) -> None:
        self.assertEqual(Setup(40, 15, escalation(1), EDIT).type("j"), AT_40_15)

    def test_200_by_50_has_the_text_beside_the_lists(self) -> None:
        text = Setup(200, 50, escalation(1), EDIT).type("j").split("\n")
        self.assertEqual(len(text), 50)
        self.assertEqual(text[1][100:128], "│── ESCALATION 2, 4:59 left ")
        self.assertRegex(text[4], r"^  1  s1  filesystem.read_text_file .*4:59│ rule   outside-the-workspace: editing")
        self.assertRegex(text[5], r"^> 2  s1  filesystem.edit_file .*4:59│ undo   cannot be undone: its effects")

    def test_an_edit_is_shown_as_what_it_changes(self) -> None:
        text = Setup(60, 40, EDIT).settle()
        self.assertIn("   one\n - two\n + 2\n", text)

    def test_another_size_is_drawn_anew(self) -> None:
        setup = Setup(80, 24, escalation(1), EDIT)
        setup.type("j")
        setup.terminal.screen.resize(15, 40)
        setup.console.resized(40, 15)
        self.assertEqual(setup.settle(), AT_40_15)

    def test_times_run(self) -> None:
        setup = Setup(80, 24, escalation(1))
        setup.time += 9
        setup.clock.advance(1.0)
        self.assertIn("ESCALATION 1, 4:50 left", setup.settle())

    def test_colours_are_the_viewers(self) -> None:
        plain = Setup(80, 24, escalation(1), term="vt52").terminal.sent
        self.assertIsNone(re.search(rb"\x1b\[[0-9;]*3[0-7]m", plain))
        self.assertIsNotNone(re.search(rb"\x1b\[0;[0-9;]*44m", Setup(80, 24, escalation(1)).terminal.sent))


class DecisionTests(SynchronousTestCase):
    """Decisions go to the source with the digest that was shown."""

    def setUp(self) -> None:
        self.setup = Setup(80, 24, escalation(1), EDIT)

    def test_by_key(self) -> None:
        text = self.setup.type("jay")
        self.assertEqual(self.setup.source.decided, [(2, Outcome.APPROVED, EDIT.digest)])
        self.assertIn("escalation 2 was approved by ada", text)
        self.assertIn(f"2  s1  {TIME}  filesystem.edit_file  was approved by ada", text)

    def test_by_command(self) -> None:
        self.setup.type("/deny 1\r")
        self.assertEqual(self.setup.source.decided, [(1, Outcome.DENIED, escalation(1).digest)])

    def test_an_approval_is_kept_for_what_the_question_names(self) -> None:
        self.setup.source.put(msgspec.structs.replace(EDIT, scope=SCOPE))
        self.setup.settle()
        self.assertEqual(self.setup.type("jA"), WHILE_IT_ASKS_TO_KEEP)
        text = self.setup.type("y")
        self.assertEqual(self.setup.source.decided, [(2, Outcome.APPROVED, EDIT.digest)])
        self.assertEqual(list(self.setup.source.kept), [2])
        self.assertIn("escalation 2 was approved by ada, and kept", text)

    def test_a_scope_that_does_not_fit_is_not_kept(self) -> None:
        self.setup.source.put(msgspec.structs.replace(EDIT, scope="filesystem.edit_file in /" + "deep/" * 250))
        self.setup.settle()
        self.assertIn("the screen is too small to show the call", self.setup.type("jAy"))
        self.assertEqual((self.setup.source.decided, self.setup.source.kept), ([], {}))

    def test_what_is_kept_is_listed_and_revoked(self) -> None:
        self.setup.source.kept = {3: permission(3)}
        text = self.setup.type("/permissions\r")
        self.assertIn("── PERMISSIONS, Esc to close", text)
        self.assertIn(" 3  filesystem.read_text_file in /srv/src and below\n", text)
        self.assertIn("    kept by ada 1 min ago, used 2 times\n", text)
        text = self.setup.type("/revoke 3\r")
        self.assertIn("Revoked: you are asked again about filesystem.read_text_file in /srv/src and", text)
        self.assertIn("no kept approvals", text)
        self.assertIn("there is no permission 3", self.setup.type("/revoke 3\r"))
        self.assertEqual(self.setup.type("a").count("PERMISSIONS"), 0)

    def test_one_read_with_everything_in_it_decides_nothing(self) -> None:
        self.setup.console.received(b"ay")
        self.setup.settle()
        self.assertEqual(self.setup.source.decided, [])
        for read in (b"yy", b"yes", b"ye"):
            self.setup.clock.advance(2)
            self.setup.console.received(read)
            self.setup.settle()
        self.assertIn("several keys came at once", self.setup.terminal.text)
        self.assertEqual(self.setup.source.decided, [])

    def test_a_key_that_is_too_early_has_to_be_pressed_again(self) -> None:
        self.setup.type("a")
        self.setup.clock.advance(0.5)
        self.setup.console.received(b"y")
        self.assertIn("too early: press y again\n y yes  Esc no", self.setup.settle())
        self.setup.clock.advance(1)
        self.assertTrue(self.setup.settle().endswith("/ command"))
        self.assertEqual(self.setup.source.decided, [])
        self.setup.type("y")
        self.assertEqual(len(self.setup.source.decided), 1)

    def test_a_command_at_a_question_is_a_command(self) -> None:
        self.setup.type("a")
        self.assertIn("Deny all 2 that wait: 1, 2?", self.setup.type("/deny all\r"))
        self.setup.type("y")
        self.assertEqual([outcome for _, outcome, _ in self.setup.source.decided], [Outcome.DENIED] * 2)

    def test_what_is_pasted_into_the_input_line_is_asked_about(self) -> None:
        self.setup.type("/")
        self.setup.console.received(b"\x1b[200~approve 1\x1b[201~")
        self.assertIn("Approve 1, filesystem.read_text_file? y/Esc", self.setup.type("\r"))
        self.assertEqual(self.setup.source.decided, [])

    def test_what_is_pasted_is_no_key(self) -> None:
        for piece in (b"\x1b[200~", b"a", b"y", b"q", b"\x1b[201~"):
            self.setup.console.received(piece)
            self.setup.settle()
        self.assertEqual((self.setup.source.decided, self.setup.terminal.closed), ([], []))

    def test_the_first_decision_wins_and_the_second_learns_of_it(self) -> None:
        self.setup.type("a")
        self.setup.source.close(1, "denied", "grace")  # and nobody has told us yet
        self.assertIn("too late: escalation 1 was denied by grace", self.setup.type("y"))
        self.assertIn("was denied by grace", self.setup.type("\t\t"))

    def test_all_that_were_read_while_more_come(self) -> None:
        self.setup.type("j/approve all\r")
        self.setup.source.put(*(escalation(number) for number in range(3, 1000)))
        self.assertIn("Approve all 2 that you read: 1, 2?", self.setup.settle())
        self.setup.type("y")
        self.assertEqual([number for number, _, _ in self.setup.source.decided], [1, 2])
        self.assertIn("2 approved", self.setup.settle())

    def test_of_all_that_were_listed_those_that_fail_are_said_with_why(self) -> None:
        self.setup.type("/deny all\r")
        self.setup.source.close(2, "approved", "grace")  # and nobody has told us yet
        text = self.setup.type("y")
        self.assertIn("1 denied; 1 failed: 2 (too late: escalation 2 was approved by grace)", text)
        self.assertEqual(self.setup.source.waiting[1].outcome, "denied")

    def test_all_may_fail(self) -> None:
        self.setup.type("j/approve all\r")
        for number in (1, 2):
            self.setup.source.close(number, "denied", "grace")
        text = " ".join(self.setup.type("y").split())
        for number in (1, 2):
            self.assertIn(f"{number} (too late: escalation {number} was denied by grace)", text)
        self.assertIn("0 approved; 2 failed: ", text)

    def test_the_mouse_chooses_and_scrolls(self) -> None:
        self.setup.console.received(b"\x1b[<0;10;5M\x1b[<0;10;5m")
        self.assertIn("> 1  s1  filesystem", self.setup.settle())
        self.setup.console.received(b"\x1b[<0;10;6M\x1b[<0;10;6m")
        self.assertIn("> 2  s1  filesystem", self.setup.settle())
        long = Setup(80, 24, escalation(1, {"text": "one\ntwo\n" * 50}))
        before = long.settle()
        long.console.received(b"\x1b[<65;10;20M")
        self.assertNotEqual(long.settle(), before)


class NewsTests(SynchronousTestCase):
    """What happens meanwhile."""

    def test_a_new_escalation_rings_and_is_in_the_title(self) -> None:
        setup = Setup(80, 24, escalation(1))
        self.assertEqual(re.findall(rb"[^\w]\a", setup.terminal.sent), [])
        setup.source.put(escalation(2))
        setup.settle()
        self.assertEqual(re.sub(rb"\x1b\]2;[^\a]*\a", b"", setup.terminal.sent).count(b"\a"), 1)
        self.assertIn(b"\x1b]2;ironcurtain: 2 waiting\a", setup.terminal.sent)

    def test_it_is_drawn_within_20_milliseconds_also_right_after_other_news(self) -> None:
        setup = Setup(80, 24)
        setup.settle()
        setup.source.tell()
        setup.clock.advance(0.001)
        setup.source.put(escalation(1))
        setup.clock.pump([0.005, 0.005, 0.005, 0.004])
        self.assertIn("ESCALATION 1", setup.terminal.text)

    def test_a_thousand_at_once_are_asked_for_only_now_and_then(self) -> None:
        setup = Setup(80, 24)
        asked = []

        class Counting(GivenSource):
            async def escalations(self, closed: bool = False) -> list[Any]:
                asked.append(closed)
                return await GivenSource.escalations(setup.source, closed)

        setup.source.__class__ = Counting
        for number in range(1, 1001):
            setup.source.put(escalation(number))
            setup.clock.advance(0.001)
        setup.settle()
        self.assertLess(len(asked), 15)
        self.assertIn("1000 waiting", setup.settle())

    def test_what_the_lists_lack_is_looked_for_at_each_refresh(self) -> None:
        setup = Setup(80, 24)
        setup.source.lacks = ["Without 2 sessions of build-3."]
        setup.source.put(escalation(1))
        self.assertIn("Without 2 sessions of build-3.", setup.settle())
        setup.source.lacks = []
        setup.source.put(escalation(2))
        self.assertNotIn("Without", setup.settle())

    def test_a_source_that_fails_is_told_and_asked_again(self) -> None:
        setup = Setup(80, 24)
        working, setup.source.found = setup.source.found, None  # type: ignore[assignment]
        setup.source.tell()
        setup.settle()
        self.assertEqual(len(self.flushLoggedErrors(TypeError)), 1)
        setup.source.found = [*working, session(2)]
        setup.clock.pump([1.0] * 6)
        self.assertIn("2 sessions", setup.settle())


class SlowViewerTests(SynchronousTestCase):
    """A viewer that does not take what is sent."""

    def test_frames_are_left_out_and_the_newest_is_drawn_later(self) -> None:
        setup = Setup(80, 24, escalation(1))
        setup.terminal.blocked = True
        sent = setup.terminal.sent
        for number in range(2, 6):
            setup.source.put(escalation(number))
            setup.settle()
        self.assertEqual(setup.terminal.sent, sent)
        setup.terminal.blocked = False
        setup.console.drained()
        text = setup.settle()
        self.assertIn("5 waiting", text)
        self.assertEqual(text, Setup(80, 24, *setup.source.waiting.values()).settle())

    def test_what_was_not_drawn_is_not_part_of_all(self) -> None:
        setup = Setup(80, 24, escalation(1))
        setup.terminal.blocked = True
        setup.source.put(escalation(2))
        setup.settle()
        setup.type("/approve all\r")
        setup.terminal.blocked = False
        setup.console.drained()
        setup.settle()
        setup.type("y")
        self.assertEqual([number for number, _, _ in setup.source.decided], [1])


class FarewellTests(SynchronousTestCase):
    """However it ends, the terminal is given back and nothing stays behind."""

    def ended(self, setup: Setup) -> None:
        self.assertEqual(setup.clock.getDelayedCalls(), [])
        self.assertEqual(setup.source.listeners, [])

    def test_leaving(self) -> None:
        setup = Setup(80, 24, escalation(1))
        setup.type("q")
        self.assertEqual(self.successResultOf(setup.console.ended), 0)
        self.assertEqual(setup.terminal.closed, [0])
        for mode in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[23;0t"):
            self.assertIn(mode, setup.terminal.sent[-200:])
        self.ended(setup)

    def test_stopping_from_outside_while_something_is_asked(self) -> None:
        setup = Setup(80, 24, escalation(1))
        setup.source.tell()
        setup.console.stop(143)
        setup.console.stop()
        self.assertEqual(self.successResultOf(setup.console.ended), 143)
        self.ended(setup)

    def test_a_channel_that_is_gone_is_not_written_to(self) -> None:
        setup = Setup(80, 24, escalation(1))
        sent = setup.terminal.sent
        setup.console.lost()
        setup.console.received(b"x")
        self.assertEqual((setup.terminal.sent, setup.terminal.closed), (sent, []))
        self.successResultOf(setup.console.ended)
        self.ended(setup)

    def test_a_fault_of_ours_ends_it_properly(self) -> None:
        setup = Setup(80, 24, escalation(1))
        setup.source.put(escalation(2, arguments=None, reason=5))
        setup.type("j")
        self.assertEqual(len(self.flushLoggedErrors(AttributeError)), 1)
        self.assertEqual((setup.terminal.closed, self.successResultOf(setup.console.ended)), ([70], 70))
        self.assertIn(b"\x1b[?1049l", setup.terminal.sent[-200:])
        self.ended(setup)
