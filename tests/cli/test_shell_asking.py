"""Questions of ``ironcurtain shell`` at the terminal, and the data that is piped into it."""

from __future__ import annotations

import json
import os
import pty
import select
import tempfile
import termios
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.shell_above import is_above, unattended_above
from ironcurtain.cli.shell_asking import TerminalQuestions, nobody_attends
from ironcurtain.cli.shell_input import KEPT, PipedData, read_data
from ironcurtain.cli.shell_pages import PagedQuestion, approval, decision_of
from ironcurtain.errors import UsageError
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.process.identity import identify
from ironcurtain.shell.inheritance import VARIABLE
from ironcurtain.shell.messages import Approval, ApprovalRequested, ProposedStep, StepKind
from ironcurtain.view.look import Look
from tests.audit.doubles import scratch
from tests.product import LIMIT

STEP = ProposedStep(number=2, command="rm -r 'x\x1b[2J'", purpose="clean", reason="approval.default asks about rm")
REQUEST = ApprovalRequested(plan_id="p1", step=STEP, number=7, digest="d" * 64, scope="shell.run in /w")


class Readers(Clock):
    """A clock that knows who reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reading: list[object] = []

    def addReader(self, reader: object) -> None:
        self.reading.append(reader)

    def removeReader(self, reader: object) -> None:
        self.reading.remove(reader)


class QuestionTests(SynchronousTestCase):
    """With a terminal whose keys a test types."""

    def setUp(self) -> None:
        self.master, descriptor = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.clock, self.decided = Readers(), list[Approval]()
        self.questions = TerminalQuestions(self.clock, descriptor, Look(dumb=True), self.decided.append)
        self.addCleanup(self.questions.close)

    def shown(self, end: str) -> str:
        """:returns: what the terminal shows, until these words."""
        found = b""
        while end.encode() not in found and select.select([self.master], [], [], LIMIT)[0]:
            found += os.read(self.master, 65536)
        return found.decode()

    def test_a_line_after_a_second_decides_on_what_was_shown(self) -> None:
        self.questions.ask(REQUEST)
        shown = self.shown("Enter: ")
        self.assertIn("rm -r 'x\\x1b[2J'", shown)
        self.assertIn("A allows until this session ends: shell.run in /w", shown)
        self.clock.advance(1.1)
        self.questions.typed(b"a\n")
        self.assertEqual(self.decided, [Approval(plan_id="p1", step=2, decision="allow", digest="d" * 64)])
        self.assertEqual(self.clock.reading, [])

    def test_what_comes_at_once_decides_nothing(self) -> None:
        self.questions.ask(REQUEST)
        self.questions.typed(b"a\n")
        self.assertEqual(self.decided, [])
        self.assertIn("too early", self.shown("too early"))

    def test_other_words_decide_nothing_and_the_end_denies(self) -> None:
        self.questions.ask(REQUEST)
        self.clock.advance(2)
        for line in (b"\n", b"allow it\n", b"aa\n", b"approve ", b"all\n"):
            self.questions.typed(line)
        self.assertEqual(self.decided, [])
        self.questions.typed(b"")
        self.assertEqual([each.decision for each in self.decided], ["deny"])

    def test_what_is_answered_elsewhere_is_asked_no_more(self) -> None:
        self.questions.ask(REQUEST)
        self.clock.advance(2)
        self.questions.withdraw()
        self.questions.typed(b"a\n")
        self.assertEqual((self.decided, self.clock.reading), ([], []))

    def test_what_was_begun_at_another_question_is_no_part_of_an_answer(self) -> None:
        self.questions.ask(REQUEST)
        self.questions.typed(b"a")  # without Enter, but Ctrl-D
        self.questions.withdraw()
        self.questions.ask(msgspec.structs.replace(REQUEST, plan_id="p2"))
        self.clock.advance(1.1)
        self.questions.typed(b"\n")
        self.assertEqual(self.decided, [])

    def test_a_long_question_is_decided_on_after_its_last_page(self) -> None:
        termios.tcsetwinsize(self.master, (10, 60))
        self.questions.ask(msgspec.structs.replace(REQUEST, step=LONG))
        found = self.shown("d deny: ")
        for line in (b"a\n", b"\n", b"a\n"):
            self.clock.advance(1.1)
            self.questions.typed(line)
            found += self.shown(": ")
        self.assertEqual(found.count("not all of it was shown"), 2)
        termios.tcsetwinsize(self.master, (100, 60))
        self.clock.advance(1.1)
        self.questions.typed(b"\n")
        found += self.shown("and Enter: ")
        self.assertEqual([f"line {n}" for n in range(30) if f"line {n}\r\n" not in found], [])
        self.assertEqual(self.decided, [])
        self.clock.advance(1.1)
        self.questions.typed(b"a\n")
        self.assertEqual([each.decision for each in self.decided], ["allow"])


LONG = ProposedStep(number=2, command="\n".join(f"line {n}" for n in range(30)), undo="remote")


class PageTests(SynchronousTestCase):
    """What is shown, and what counts as an answer."""

    def test_only_what_has_a_scope_is_kept(self) -> None:
        self.assertEqual(decision_of("A", REQUEST), "allow_session")
        self.assertIsNone(decision_of("A", ApprovalRequested(plan_id="p1", step=STEP, number=7, digest="d")))

    def test_an_edit_is_shown_as_its_diff(self) -> None:
        step = ProposedStep(
            number=1, command="write /w/a", kind=StepKind.EDIT, diff="--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-old\n+new\x07\n"
        )
        request = ApprovalRequested(plan_id="p1", step=step, number=1, digest="d")
        text = PagedQuestion(request, Look(color=False)).page(80, 40, 0.0)
        self.assertIn("\n-old\n+new\\x07\n", text)

    def test_what_an_agent_below_may_do_is_shown(self) -> None:
        step = ProposedStep(number=1, command="agent x", kind=StepKind.AGENT, arguments={"only": {"network": "deny"}})
        request = ApprovalRequested(plan_id="p1", step=step, number=1, digest="d")
        self.assertIn('only: {"network":"deny"}', PagedQuestion(request, Look(dumb=True)).page(80, 40, 0.0))

    def test_nothing_counts_as_shown_where_no_row_of_it_stays_on_the_screen(self) -> None:
        for columns, height in ((200, 1), (80, 2), (21, 4), (10, 24), (1, 24), (1, 1)):
            asked = PagedQuestion(REQUEST, Look(dumb=True))
            self.assertIn("too small", asked.page(columns, height, 0.0))
            for now in range(2, 40, 2):
                self.assertIsInstance(asked.answer("" if now % 4 else "a", columns, height, float(now)), str)
            self.assertIn("Step 2", str(asked.answer("", 80, 24, 50.0)))
            self.assertEqual(asked.answer("d", columns, height, 60.0), approval("deny", REQUEST))

    @given(
        st.lists(st.tuples(st.integers(5, 100), st.integers(1, 40), st.sampled_from(("", "", "", "a", "d", "x", "z")))),
        st.integers(1, 60),
    )
    def test_nothing_is_allowed_before_all_of_it_was_shown(
        self, answers: list[tuple[int, int, str]], lines: int
    ) -> None:
        """In a terminal whose size changes at any time."""
        step = ProposedStep(number=2, command="\n".join(f"line {n}." for n in range(lines)))
        asked, now = PagedQuestion(msgspec.structs.replace(REQUEST, step=step), Look(color=False)), 0.0
        shown = asked.page(80, 24, now)
        for columns, height, word in answers:
            now += 2
            answer = asked.answer(word, columns, height, now)
            if isinstance(answer, str):
                self.assertTrue(word or len(answer.split("\n")) <= height, answer)
                shown += answer
                continue
            if answer.decision == "allow":
                self.assertEqual([n for n in range(lines) if f"line {n}." not in shown], [])
            return


class AttendanceTests(SynchronousTestCase):
    """Whose terminal it is."""

    def test_below_a_session_or_an_agent_elsewhere_nobody_attends(self) -> None:
        home = Home(root := scratch(self), root)
        home.registry.mkdir(parents=True)
        self.assertEqual(nobody_attends(home, {}), "")
        parent = identify(os.getppid())
        entry = SessionEntry(
            session_id="s",
            escalation_dir="",
            label="shell",
            started_at="2026-11-01T00:00:00Z",
            pid=parent.pid,
            pid_start_time=parent.start_time,
            boot_id=parent.boot_id,
            number=4,
            kind="shell",
        )
        SessionRegistry(home.registry).add(entry)
        self.assertIn("session 4", nobody_attends(home, {}))
        self.assertIsNotNone(unattended_above(home), "it cannot be known")
        snapshot = home.session("s").snapshot
        snapshot.parent.mkdir(parents=True)
        for terminal in (False, True):
            snapshot.write_text(json.dumps({"id": "s", "terminal": terminal}))
            self.assertEqual(unattended_above(home), None if terminal else entry)
        self.assertTrue(is_above(home, "s"))
        self.assertFalse(is_above(home, "other"))
        SessionRegistry(home.registry).add(msgspec.structs.replace(entry, session_id="other", number=5))
        self.assertFalse(is_above(home, "s"), "one process has both")
        SessionRegistry(home.registry).remove("other")
        SessionRegistry(home.registry).remove("s")
        self.assertTrue(nobody_attends(home, {VARIABLE: "garbage"}))


class DataTests(SynchronousTestCase):
    """What is piped in."""

    def read(self, data: bytes) -> PipedData:
        """:returns: what is read of a file."""
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            return read_data(file.fileno())

    def test_long_data_lose_their_middle(self) -> None:
        for size in (3 * KEPT, 50 * KEPT):
            text = self.read(b"<" + "é".encode() * size + b">").text()
            self.assertLess(len(text), 2 * KEPT + 100)
            self.assertEqual((text[0], text[-1]), ("<", ">"))
            self.assertIn("left out", text)

    def test_what_is_no_text_is_refused(self) -> None:
        for data in (b"\xff\xfe", b"a\0b", b"x" * 100 + b"\xc3"):
            with self.assertRaisesRegex(UsageError, "no UTF-8 text"):
                self.read(data).text()

    def test_of_a_stream_that_goes_on_the_beginning_is_used(self) -> None:
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.write(writing, b"first\n\xc3")
        data = read_data(reading, quiet=0.01)
        self.assertTrue(data.open)
        self.assertEqual(data.text(), "first\n")
        os.close(writing)
        self.assertFalse(read_data(reading, quiet=0.01).open)

    def test_devices_have_none(self) -> None:
        with Path(os.devnull).open("rb") as file:
            self.assertEqual(read_data(file.fileno()).size, 0)
