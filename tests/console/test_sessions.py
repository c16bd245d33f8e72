"""Sessions on the console."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import events
from ironcurtain.session.model import AuditHead, SessionRequest
from tests.console.doubles import NOW, Setup, session
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
