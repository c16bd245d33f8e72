"""Sessions on the console."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import events
from ironcurtain.session.model import AuditHead, SessionRequest, Turn, Usage
from tests.console.doubles import NOW, Setup, escalation, session
from tests.console.test_console import TIME


class SessionTests(SynchronousTestCase):
    def test_the_activity_of_a_session(self) -> None:
        setup = Setup(80, 24)
        setup.type("/sessions\r")
        reader = setup.source.readers[1]
        call = events.ToolCallRaised(call_id="1", server="files", tool="read", arguments='{"path":"\x1b[2J"}')
        refused = events.RequestRefused(host="h\x1b[2J", method="POST", path="/x", reason="no such endpoint")
        said = [events.AgentText(text=text) for text in ("I lo", "ok\x1b]0;x\x07")]
        happened: tuple[events.SessionEvent, ...] = (events.StateChanged(state="processing"), *said, call, refused)
        for event in happened:
            reader(events.Stamped(1, NOW, event))
        text = setup.settle()
        self.assertIn("ACTIVITY of session 1", text)
        for words in ("I look\\x1b]0;x\\x07", "request refused: POST h\\x1b[2J/x:"):
            self.assertIn(f"{TIME} {words}", text)
        self.assertIn('● files.read {"path":"\\x1b[2J"} 0 s', text)
        setup.type("\t")
        self.assertEqual(setup.source.readers, {})

    def test_the_details_of_a_session_have_the_head_of_its_audit_log(self) -> None:
        for width, digits in ((80, 64), (60, 16)):
            setup = Setup(width, 24)
            setup.source.found = [session(head=AuditHead(sequence=42, digest="ab" * 32))]
            setup.source.tell()
            text = setup.type("/sessions\r")
            self.assertRegex(text, rf"audit head 42 (ab){{{digits // 2}}}\s")

    def test_a_session_is_started_and_followed(self) -> None:
        setup = Setup(80, 24)
        text = setup.type("/start --agent codex --workspace /srv/src look around\r")
        self.assertEqual(setup.source.started, [SessionRequest("codex", "look around", Path("/srv/src"))])
        self.assertIn("session 9 has started: ironcurtain attach 9 joins it", text)
        self.assertIn("ACTIVITY of session 9", text)
        self.assertIn("there is no agent 'nobody'", setup.type("/start --agent nobody\r"))
        setup.type("/start\r")
        self.assertEqual(setup.source.started[1:], [SessionRequest("")])


class OpenedTests(SynchronousTestCase):
    """A session that has the screen for itself."""

    def setUp(self) -> None:
        self.setup = Setup(80, 24)
        usage = Usage(input_tokens=1200, output_tokens=34, cost=0.5, token_tracking_available=True)
        self.setup.source.turns = [Turn(number=1, message="m", answer="a", usage=usage, timestamp="")]
        self.setup.type("/sessions\r")

    def test_enter_shows_what_it_used_and_where_it_works(self) -> None:
        self.assertIn("Enter open", self.setup.terminal.text)
        text = self.setup.type("\r")
        self.assertIn(f"workspace {self.setup.source.found[0].workspace}", text)
        self.assertIn("1 message, tokens 1,200 in, 34 out; cost $0.5000", text)
        self.assertIn("ironcurtain attach 1", text)
        self.assertNotIn("WAITING", text)

    def test_typed_message_is_sent_as_typed(self) -> None:
        self.setup.type("\rmgo on\r")
        self.assertEqual(self.setup.source.sent, [(1, "go on", "go on")])

    def test_pasted_message_is_sent_as_not_typed(self) -> None:
        self.setup.type("\rm")
        self.setup.console.received(b"\x1b[200~go on\x1b[201~")
        self.setup.type("\r")
        self.assertEqual(self.setup.source.sent, [(1, "go on", "")])

    def test_message_that_waits_is_taken_back_and_can_be_sent_again(self) -> None:
        self.setup.type("/message one\r/message two\r/message three\r")
        self.assertIn("/message two", self.setup.type("/withdraw 2\r"))
        self.assertEqual([text for _, text, _ in self.setup.source.sent], ["one", "three"])
        self.setup.type(" again\r")
        self.assertEqual(self.setup.source.sent[2:], [(1, "two again", "")])  # a line that was not typed
        self.assertIn("/message two again", self.setup.type("/withdraw\r"))

    def test_what_cannot_be_typed_is_taken_back_and_only_shown(self) -> None:
        self.setup.source.sent = [(1, "one\n\x1b[2Jtwo", "")]
        text = self.setup.type("/withdraw\r")
        self.assertIn("taken back from session 1: one\\n\\x1b[2Jtwo", text)
        self.assertNotIn("/message", text)
        self.assertIn("no message waits", self.setup.type("/withdraw\r"))

    def test_message_goes_to_no_other_session_than_it_was_begun_for(self) -> None:
        one, other = self.setup.source.found[0], session(number=2, id="0" * 32)
        for begin in ("\rm", "/message "):
            for left in ([other], [session(state="closed"), other]):
                self.setup.source.found = [one, other]
                self.setup.source.tell()
                self.setup.settle()
                self.setup.type(f"/sessions\rk{begin}secret")
                self.setup.source.found = left
                self.setup.source.tell()
                self.setup.settle()
                text = self.setup.type(" words\r")
                self.assertIn("session 1 has ended, and nothing was sent", text)
                self.assertIn("/message secret words", text)
                self.assertEqual(self.setup.source.sent, [])
                self.setup.console.received(b"\x1b")
                self.setup.clock.advance(1)
                self.assertNotIn("secret words", self.setup.settle())
        self.setup.type("/message to the other\r")
        self.assertEqual(self.setup.source.sent, [(2, "to the other", "to the other")])

    def test_escape_goes_back_to_the_lists(self) -> None:
        self.setup.type("\r")
        self.setup.console.received(b"\x1b")
        self.setup.clock.advance(1)
        self.assertIn("WAITING", self.setup.settle())

    def test_t_leaves_the_console_to_attach_to_the_open_session(self) -> None:
        setup = Setup(80, 24, attaches=True)
        setup.type("/sessions\rt")
        self.assertEqual((setup.terminal.closed, setup.console.attached), ([], 0))
        self.assertIn("m message  t attach  Esc back", setup.type("\r"))
        setup.type("t")
        self.assertEqual((setup.terminal.closed, setup.console.attached), ([0], 1))

    def test_attaching_is_not_offered_where_nobody_can_attach_the_viewer(self) -> None:
        self.assertNotIn("t attach", self.setup.type("\r"))
        self.setup.type("t")
        self.assertEqual(self.setup.terminal.closed, [])

    def test_session_that_ends_closes_its_screen(self) -> None:
        self.setup.type("\r")
        self.setup.source.found.clear()
        self.setup.source.tell()
        text = self.setup.settle()
        self.assertIn("session 1 has ended", text)
        self.assertIn("WAITING", text)


class OfferedKeyTests(SynchronousTestCase):
    """The keys below the screen."""

    def foot(self, setup: Setup) -> str:
        return setup.terminal.text.rstrip().splitlines()[-1]

    def test_nothing_is_offered_for_what_is_not_there(self) -> None:
        self.assertEqual(self.foot(Setup()), " Tab lists  / command  ? help  q quit")

    def test_an_approval_that_cannot_be_kept_is_not_offered(self) -> None:
        self.assertIn("a approve  d deny", self.foot(Setup(80, 24, escalation())))
        self.assertIn("a approve  A keep  d deny", self.foot(Setup(80, 24, escalation(scope="these"))))

    def test_the_question_offers_the_keys_that_answer_it(self) -> None:
        setup = Setup(80, 24, escalation())
        setup.type("a")
        self.assertIn("y yes  Esc no", self.foot(setup))
