from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain
from ironcurtain.errors import SessionError
from ironcurtain.escalation import Outcome
from ironcurtain.secrets.redaction import Secret
from ironcurtain.session import events
from ironcurtain.session.agent_events import AgentTextDropped, AgentToolFinished, AgentToolStarted
from ironcurtain.session.event import Event
from ironcurtain.session.history import read_turns
from ironcurtain.session.model import AuditHead, Reply, SessionInfo, State, Usage
from ironcurtain.session.server_events import ServersStarting
from ironcurtain.session.session import Session
from ironcurtain.session.verification import signed_heads
from tests.audit.doubles import open_files, scratch
from tests.session.doubles import USAGE, World, make_request, request


class SessionTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.before = open_files(alone=True)
        self.world = World(scratch(self))
        self.session = self.start()

    def start(self, task: str = "") -> Session:
        return self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(request(task=task))))

    def close(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.session.close("enough")))

    def code(self, message: str) -> str:
        with self.assertRaises(SessionError) as caught:
            self.session.send(message)
        code: str = caught.exception.code
        return code

    def assertFails(self, sent: Deferred[Reply], code: str, words: str) -> None:
        error = self.failureResultOf(sent, SessionError).value
        assert isinstance(error, SessionError)
        self.assertEqual(error.code, code)
        self.assertIn(words, str(error))

    def seen(self, kind: type[Event]) -> list[Event]:
        return [stamped.event for stamped in self.session.events.after(0) if isinstance(stamped.event, kind)]


class StateTests(SessionTestCase):
    def test_ready_to_processing_and_back(self) -> None:
        self.assertIs(self.session.state, State.READY)
        sent = self.session.send("wait")
        self.assertIs(self.session.state, State.PROCESSING)
        self.world.agents[0].waiting[0].callback(None)
        self.assertEqual(self.successResultOf(sent), Reply("you said wait", USAGE))
        self.assertIs(self.session.state, State.READY)
        self.assertEqual(self.successResultOf(self.session.send("hello")).text, "you said hello")
        states = [event.state for event in self.seen(events.StateChanged) if isinstance(event, events.StateChanged)]
        self.assertEqual(states, ["ready", "processing", "ready", "processing", "ready"])

    def test_one_message_at_a_time(self) -> None:
        sent = self.session.send("wait")
        self.assertEqual(self.code("another"), "SESSION_NOT_READY")
        self.world.agents[0].waiting[0].callback(None)
        self.successResultOf(sent)

    def test_a_failed_message_leaves_the_session_ready(self) -> None:
        self.assertFails(self.session.send("fail"), "MESSAGE_FAILED", "no model")
        self.assertIs(self.session.state, State.READY)
        self.assertFails(self.session.send("crash"), "MESSAGE_FAILED", "internal error: RuntimeError")
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertEqual(self.successResultOf(self.session.send("hello")).text, "you said hello")

    def test_a_cancelled_message_leaves_it_ready_and_withdraws_its_questions(self) -> None:
        for cancel in (lambda sent: self.session.cancel(), lambda sent: sent.cancel()):
            sent = self.session.send("ask")
            self.assertEqual(len(self.session.escalations.pending()), 1)
            cancel(sent)
            self.assertEqual(self.session.escalations.pending(), [])
            self.assertEqual(self.session.escalations.history()[-1].outcome, Outcome.WITHDRAWN)
            self.assertEqual(self.successResultOf(sent).text, "withdrawn by ")
            self.assertIs(self.session.state, State.READY)
        sent = self.session.send("wait")
        self.assertTrue(self.session.cancel().cancelled)
        self.assertFails(sent, "MESSAGE_FAILED", "cancelled")

    def test_there_is_nothing_to_cancel_after_an_answer_that_came_at_once(self) -> None:
        self.successResultOf(self.session.send("hello"))
        self.assertFalse(self.session.cancel().cancelled)

    def test_a_message_that_is_half_a_character_is_carried(self) -> None:
        """Command lines that are no UTF-8 come so; neither files nor the control API could hold it."""
        self.assertEqual(self.successResultOf(self.session.send("caf\udce9")).text, "you said caf?")
        self.assertEqual(read_turns(self.session.paths.history)[0].message, "caf?")


class ClosingTests(SessionTestCase):
    def test_a_closed_session_takes_no_message(self) -> None:
        self.close()
        self.assertEqual(self.code("hello"), "SESSION_CLOSED")
        self.assertEqual((self.session.info.state, self.session.info.reason), ("closed", "enough"))

    def test_everything_is_given_back(self) -> None:
        self.successResultOf(self.session.send("hello"))
        self.close()
        self.assertEqual(self.world.registered(), [])
        self.assertEqual(self.world.clock.getDelayedCalls(), [])
        self.assertEqual(open_files(), self.before)
        self.assertEqual(self.world.tools[0].calls, ["start", "up", "stop"])
        self.assertEqual(self.world.agents[0].calls, ["start", "up", "stop"])

    def test_information_can_still_be_read(self) -> None:
        self.successResultOf(self.session.send("hello"))
        self.close()
        self.assertEqual(self.session.history.turns[0].answer, "you said hello")
        self.assertEqual(self.session.info.turns, 1)
        self.assertIsInstance(self.session.events.after(0)[-1].event, events.StateChanged)
        with open(self.session.paths.audit, "rb") as file:
            report = chain.verify(file)
        self.assertEqual((report.problems, report.ended), ([], True))
        self.assertEqual(json.loads(self.session.paths.snapshot.read_bytes())["state"], "closed")

    def test_usage_of_a_message_is_what_its_answer_says(self) -> None:
        self.world.agents[0].usage = lambda: Usage(input_tokens=7)  # type: ignore[method-assign]
        self.successResultOf(self.session.send("hello"))
        self.failureResultOf(self.session.send("fail"), SessionError)
        self.assertEqual([turn.usage for turn in self.session.history.turns], [USAGE, Usage(input_tokens=7)])

    def test_its_model_is_what_its_agent_uses_now(self) -> None:
        self.world.agents[0].model = "m2"
        self.assertEqual(self.session.info.model, "m2")
        self.close()
        self.assertEqual(msgspec.json.decode(self.session.paths.snapshot.read_bytes(), type=SessionInfo).model, "m2")

    def test_servers_that_take_long_to_start_are_part_of_the_description(self) -> None:
        core = self.world.agents[0].core
        assert core is not None
        for servers in ({"slow": 5.0}, {}):
            core.emit(ServersStarting(servers=servers))
            self.assertEqual(self.session.info.servers_starting, servers)
        core.emit(ServersStarting(servers={"slow": 5.0}))
        self.close()
        self.assertEqual(self.session.info.servers_starting, {})

    def test_the_newest_signed_head_is_told_and_is_final_at_the_end(self) -> None:
        first = self.session.info.head
        assert first is not None
        self.close()
        last, (*_, signed) = self.session.info.head, signed_heads(self.session.paths.audit)
        self.assertEqual(last, AuditHead(sequence=signed.sequence, digest=signed.head, final=True))
        self.assertEqual((first.sequence < signed.sequence, first.final, self.session.info.over), (True, False, True))

    def test_closing_twice_waits_for_the_first(self) -> None:
        self.world.agents[0].stop_pause = pause = Deferred[None]()
        first = Deferred.fromCoroutine(self.session.close("one"))
        second = Deferred.fromCoroutine(self.session.close("two"))
        self.assertNoResult(first)
        self.assertNoResult(second)
        pause.callback(None)
        self.successResultOf(first)
        self.successResultOf(second)
        self.close()
        self.assertEqual(self.session.reason, "one")
        self.assertEqual(self.world.agents[0].calls.count("stop"), 1)

    def test_giving_up_the_wait_does_not_stop_the_closing(self) -> None:
        self.world.agents[0].stop_pause = pause = Deferred[None]()
        first = Deferred.fromCoroutine(self.session.close("one"))
        first.addErrback(lambda _: None)
        first.cancel()
        pause.callback(None)
        self.assertEqual(open_files(), self.before)

    def test_closing_cancels_the_message_and_withdraws_its_questions(self) -> None:
        sent = self.session.send("ask")
        self.session.escalations.ask(self.session.escalations.pending()[0].request)
        self.close()
        self.assertEqual(self.session.escalations.pending(), [])
        self.assertEqual({it.outcome for it in self.session.escalations.history()}, {Outcome.WITHDRAWN})
        self.assertEqual(os.listdir(self.session.paths.escalations), [])
        self.assertTrue(sent.called)
        sent.addErrback(lambda _: None)

    def test_closing_withdraws_what_no_message_asked(self) -> None:
        core = self.world.agents[0].core
        assert core is not None
        asked = core.escalations.ask(make_request(core))
        self.close()
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.WITHDRAWN)
        self.assertEqual(self.world.clock.getDelayedCalls(), [])

    def test_closing_fails_the_message_for_its_sender(self) -> None:
        failed = self.session.send("wait").addErrback(lambda failure: failure.value)
        self.close()
        error = self.successResultOf(failed)
        assert isinstance(error, SessionError)
        self.assertEqual((error.code, str(error)), ("MESSAGE_FAILED", "the message was cancelled"))
        self.assertIs(self.session.state, State.CLOSED)
        self.assertEqual(read_turns(self.session.paths.history)[0].error, "cancelled")

    def test_no_question_is_raised_after_closing(self) -> None:
        core = self.world.agents[0].core
        assert core is not None
        self.close()
        sent = Deferred.fromCoroutine(self.world.agents[0].respond("ask"))
        self.assertEqual(self.successResultOf(sent).text, "unattended by ")
        self.assertEqual(self.world.clock.getDelayedCalls(), [])

    def test_one_part_that_does_not_stop_does_not_keep_the_others(self) -> None:
        self.world.agents[0].stop_trouble = RuntimeError("stuck")
        self.close()
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertEqual(self.world.tools[0].calls[-1], "stop")
        self.assertEqual(open_files(), self.before)


class EscalationTests(SessionTestCase):
    def test_a_person_answers_and_everybody_hears_of_it(self) -> None:
        sent = self.session.send("ask")
        (pending,) = self.session.escalations.pending()
        self.assertEqual(self.session.info.pending, 1)
        self.assertEqual(len(os.listdir(self.session.paths.escalations)), 1)
        self.session.escalations.decide(pending.number, Outcome.APPROVED, "ada")
        self.assertEqual(self.successResultOf(sent).text, "approved by ada")
        (raised,), (closed,) = self.seen(events.EscalationRaised), self.seen(events.EscalationClosed)
        assert isinstance(raised, events.EscalationRaised) and isinstance(closed, events.EscalationClosed)
        self.assertEqual((raised.number, raised.digest), (pending.number, pending.request.digest))
        self.assertEqual((closed.number, closed.outcome, closed.by), (pending.number, "approved", "ada"))

    def test_numbers_go_on_in_the_next_session(self) -> None:
        numbers = []
        for _ in range(3):
            sent = self.session.send("ask")
            numbers.append(self.session.escalations.pending()[0].number)
            self.close()
            sent.addErrback(lambda _: None)
            self.session = self.start()
        self.assertEqual(numbers, [1, 2, 3])


class FileTests(SessionTestCase):
    def test_all_files_are_the_owners_alone(self) -> None:
        self.successResultOf(self.session.send("hello"))
        for path in (self.session.paths.directory, *self.session.paths.directory.rglob("*"), *self.world.registered()):
            self.assertEqual(path.stat().st_mode & 0o7777, 0o700 if path.is_dir() else 0o600, path)

    def test_the_registry_entry_is_there_only_while_the_session_is(self) -> None:
        (path,) = self.world.registered()
        entry = json.loads(path.read_bytes())
        self.assertEqual(path.name, f"session-{self.session.id}.json")
        self.assertEqual(
            {name: entry[name] for name in ("sessionId", "escalationDir", "label", "pid", "number", "controlSocket")},
            {
                "sessionId": self.session.id,
                "escalationDir": str(self.session.paths.escalations),
                "label": "plain: interactive",
                "pid": os.getpid(),
                "number": 1,
                "controlSocket": "/run/control.sock",
            },
        )
        self.close()
        self.assertEqual(self.world.registered(), [])

    def test_label_of_a_conversation_has_its_first_message(self) -> None:
        self.assertEqual(self.session.label, "plain: interactive")
        for message in ("fix the build", "and the tests"):
            self.successResultOf(self.session.send(message))
            self.assertEqual(self.session.label, "plain: fix the build")
        self.assertEqual(self.session.info.label, "plain: fix the build")

    def test_the_label_is_short_and_safe(self) -> None:
        self.close()
        self.session = self.start("fix\x1b[2J the\n\u202ebuild " + "x" * 500)
        self.assertTrue(self.session.label.isprintable())
        self.assertTrue(self.session.label.startswith("plain: fix [2J the build x"))
        self.assertLessEqual(len(self.session.label), 60)

    def test_the_log_says_what_happened_without_secrets(self) -> None:
        self.world.services.redactor.add(Secret("correct horse battery"))
        self.successResultOf(self.session.send("my key is sk-ant-api03-" + "aB3_" * 10 + ", mind\x1b[2J"))
        core = self.world.agents[0].core
        assert core is not None
        core.log_line("git", "password: correct horse battery\n")
        self.close()
        lines = self.session.paths.log.read_text().splitlines()
        self.assertTrue(all(line.isprintable() for line in lines))
        self.assertIn("message 1: my key is [redacted api-key], mind\\x1b[2J", lines[2])
        self.assertNotIn("correct horse", "".join(lines))

    def test_the_log_has_what_the_agent_says_and_changes(self) -> None:
        self.world.services.redactor.add(Secret("correct horse battery"))
        core = self.world.agents[0].core
        assert core is not None
        core.emit(events.AgentText(text="I look\nat correct "))
        core.emit(events.AgentText(text="horse battery"))
        core.emit(AgentToolStarted(tool_id="1", name="Edit", what="a.py"))
        core.emit(AgentToolFinished(tool_id="1", status="success", diff="@@ -1 +1 @@\n-old\n+new\x1b[2J\n"))
        self.successResultOf(self.session.send("hello"))
        core.emit(events.AgentText(text="never completed"))
        core.emit(AgentTextDropped())
        self.close()
        lines = [line.split(" ", 1)[1] for line in self.session.paths.log.read_text().splitlines()]
        said = [line.removeprefix("agent: ") for line in lines if line.startswith("agent: ")]
        shown = ["I look", "at [redacted]", "@@ -1 +1 @@", "-old", "+new\\x1b[2J", "you said hello"]
        self.assertEqual(said, shown)
        tool = lines.index("session: tool 1 reported: Edit a.py")
        self.assertEqual(lines[tool - 1], "agent: at [redacted]")

    def test_no_live_secret_is_told_or_kept(self) -> None:
        self.world.services.redactor.add(Secret("correct horse battery"))
        self.successResultOf(self.session.send("say correct horse battery"))
        core = self.world.agents[0].core
        assert core is not None
        core.emit(events.AgentText(text="correct horse battery"))
        core.emit(AgentToolStarted(tool_id="1", name="Bash", what="echo correct horse battery"))
        core.emit(AgentToolFinished(tool_id="1", status="success", diff="+correct horse battery"))
        self.assertNotIn("correct horse", self.session.paths.history.read_text())
        self.assertNotIn("correct horse", repr(self.session.events.after(0)))

    def test_the_description_on_disk_follows(self) -> None:
        self.assertEqual(json.loads(self.session.paths.snapshot.read_bytes())["state"], "ready")


class FullDiskTests(SessionTestCase):
    """Nothing can be written any more: the session ends in good order all the same."""

    def full(self, path: Path) -> None:
        """Let a file refuse everything that is written to it."""
        path.unlink(missing_ok=True)
        path.mkdir()

    def test_a_history_that_cannot_be_written_does_not_hold_the_session(self) -> None:
        self.full(self.session.paths.history)
        self.assertEqual(self.successResultOf(self.session.send("hello")).text, "you said hello")
        self.assertIs(self.session.state, State.READY)
        self.assertEqual(self.session.history.turns[0].answer, "you said hello")

    def test_a_description_that_cannot_be_written_does_not_keep_it_open(self) -> None:
        self.full(self.session.paths.snapshot)
        self.close()
        self.assertEqual(self.world.agents[0].calls[-1], "stop")
        self.assertEqual((self.world.registered(), open_files()), ([], self.before))

    def test_a_log_that_cannot_be_written_does_not_hold_the_session(self) -> None:
        fd = os.open("/dev/full", os.O_WRONLY)
        for name in os.listdir("/proc/self/fd"):
            if os.path.realpath(f"/proc/self/fd/{name}") == str(self.session.paths.log):
                os.dup2(fd, int(name))
        os.close(fd)
        self.assertEqual(self.successResultOf(self.session.send("hello")).text, "you said hello")
        self.close()
        self.assertEqual(open_files(), self.before)

    def test_an_audit_that_cannot_be_written_does_not_keep_it_open(self) -> None:
        fd = os.open("/dev/full", os.O_WRONLY)
        for name in os.listdir("/proc/self/fd"):
            if os.path.realpath(f"/proc/self/fd/{name}") == str(self.session.paths.audit):
                os.dup2(fd, int(name))
        os.close(fd)
        self.close()
        self.assertEqual(self.world.agents[0].calls[-1], "stop")
        self.assertEqual((self.world.clock.getDelayedCalls(), open_files()), ([], self.before))
