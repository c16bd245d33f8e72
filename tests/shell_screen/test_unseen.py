"""Nothing is approved unseen, and no key that came before a question answers it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.shell.messages import Approval, ApprovalRequested, PlanProposed, ProposedStep
from ironcurtain.shell_screen.question import shown_step
from ironcurtain.text.columns import unstyled
from ironcurtain.view.steps import command_rows
from tests.shell_screen.doubles import CACHES, JOURNAL, LISTING, PLAN, STEPS, AgentMode
from tests.shell_screen.frames import LONG, SCOPED, begun, long_plan, planned, step_once, stepping


def rows_on(mode: AgentMode) -> set[str]:
    """:returns: the rows on the screen, without what stands left of them."""
    return {line[2:].rstrip() for line in mode.terminal.screen.display}


class TypedAheadTests(SynchronousTestCase):
    """Keys and pastes that are no answers."""

    def setUp(self) -> None:
        self.mode = AgentMode()
        begun(self.mode)

    def test_keys_before_the_question(self) -> None:
        self.assertEqual(self.mode.press(b"a", b"y"), [])
        self.mode.receive(PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True))
        self.assertIsNotNone(self.mode.panel.question)

    def test_keys_before_it_is_drawn(self) -> None:
        self.mode.panel.receive(PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True), self.mode.now)
        self.mode.now += 5
        self.assertEqual(self.mode.keyboard.typed(b"a", self.mode.now), [])
        self.assertEqual(self.mode.keyboard.typed(b"d", self.mode.now), [])
        self.mode.draw()
        self.assertEqual(len(self.mode.press(b"a")), 1)

    def test_keys_at_the_very_moment(self) -> None:
        self.mode.receive(PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True))
        self.mode.now += QUIET_SECONDS / 2
        self.assertEqual(self.mode.keyboard.typed(b"a", self.mode.now), [])
        self.mode.draw()
        self.assertIn("too early: press a again", self.mode.text)

    def test_another_question_in_place_of_one(self) -> None:
        self.mode.receive(ApprovalRequested(plan_id=PLAN, step=JOURNAL, number=1, digest="one"))
        self.mode.passes(5)
        self.mode.receive(ApprovalRequested(plan_id=PLAN, step=CACHES, number=2, digest="two"))
        self.assertEqual(self.mode.keyboard.typed(b"a", self.mode.now), [])

    def test_while_the_shell_has_the_terminal(self) -> None:
        self.mode.receive(PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True))
        self.mode.passes(5)
        self.mode.write(self.mode.screen.remove())
        self.assertEqual(self.mode.keyboard.typed(b"a", self.mode.now), [])
        self.mode.draw()
        self.assertEqual(self.mode.keyboard.typed(b"a", self.mode.now), [])
        self.assertEqual(len(self.mode.press(b"a")), 1)

    def test_a_step_that_is_inspected_hides_the_question(self) -> None:
        planned(self.mode)
        self.mode.press(b"\r")
        self.mode.write(self.mode.screen.remove())
        self.mode.passes(1)
        self.mode.passes(1)
        self.assertEqual(self.mode.keyboard.typed(b"\r", self.mode.now), [])
        self.assertEqual(self.mode.keyboard.typed(b"a", self.mode.now), [])

    def test_several_keys_in_one_read(self) -> None:
        planned(self.mode)
        self.assertEqual(self.mode.press(b"aa", b"ja", b"sd", b"\x1b[200~a\x1b[201~"), [])
        self.assertEqual(len(self.mode.press(b"a")), 1)


class UnseenTests(SynchronousTestCase):
    """Commands that were not on the screen, or not whole."""

    def setUp(self) -> None:
        self.mode = AgentMode()

    def test_a_plan_that_is_longer_than_the_screen(self) -> None:
        long_plan(self.mode)
        waiting = self.mode.panel.plan.waiting
        self.assertEqual(self.mode.panel.keys.missing(map(shown_step, waiting)), [])
        self.assertEqual(len(self.mode.press(b"a")), 1)

    def test_pages_of_a_plan(self) -> None:
        mode = AgentMode(80, 16)
        begun(mode)
        steps = tuple(ProposedStep(number=n, command=f"make part{n}") for n in range(1, 16))
        mode.receive(PlanProposed(plan_id=PLAN, steps=steps, confirm=True))
        self.assertEqual(mode.press(b"y"), [])
        mode.press(b" ", b" ", b"b", b" ")
        self.assertEqual(len(mode.press(b"a")), 1)

    def test_a_step_that_is_longer_than_the_screen(self) -> None:
        begun(self.mode)
        self.mode.receive(PlanProposed(plan_id=PLAN, steps=(LISTING, LONG), confirm=True))
        self.assertEqual(self.mode.press(b"a", b"a"), [])
        self.assertIn("Space shows the rest of it", self.mode.text)
        self.assertEqual(self.mode.press(b" ", b" ", b" ", b"\r"), [])
        self.assertEqual(len(self.mode.press(b"a")), 1)

    def test_to_skip_pages_is_not_to_read(self) -> None:
        step_once(self.mode)
        self.mode.press(b"\r")
        inspection = self.mode.panel.inspection
        assert inspection is not None
        inspection.top = inspection.page.total - inspection.page.rows
        self.assertEqual(self.mode.press(b"\x1b[A", b"\r", b"a"), [])

    def test_it_is_read_at_one_width(self) -> None:
        step_once(self.mode)
        self.mode.press(b"\r", b" ")
        self.mode.screen.resize(60, 24)
        self.mode.press(b" ", b" ")
        self.assertEqual(self.mode.press(b"\r", b"a"), [])

    def test_denying_needs_no_reading(self) -> None:
        step_once(self.mode)
        self.assertEqual(len(self.mode.press(b"d")), 1)

    def test_a_changed_command_is_unseen(self) -> None:
        planned(self.mode)
        steps = [LISTING, JOURNAL, CACHES, LONG]
        self.assertEqual(self.mode.panel.keys.missing(map(shown_step, steps)), [shown_step(LONG)])

    def test_what_an_approval_for_the_session_covers(self) -> None:
        stepping(self.mode)
        scope = "these: " + "\n".join(f"command-{n}" for n in range(200))
        self.mode.receive(ApprovalRequested(plan_id=PLAN, step=JOURNAL, number=9, digest="e", scope=scope))
        self.assertEqual(self.mode.press(b"A"), [])
        self.assertEqual(self.mode.press(*[b" "] * 20, b"\r"), [])
        self.assertEqual(len(self.mode.press(b"A")), 1)

    def test_a_step_is_decided_while_its_scope_is_too_long(self) -> None:
        stepping(self.mode)
        self.mode.receive(ApprovalRequested(plan_id=PLAN, step=JOURNAL, number=9, digest="e", scope="x " * 2000))
        self.assertEqual(len(self.mode.press(b"a")), 1)

    def test_a_terminal_that_is_too_small(self) -> None:
        for columns, rows in ((19, 24), (80, 6), (1, 1)):
            mode = AgentMode(columns, rows)
            planned(mode)
            self.assertEqual(mode.press(b"a", b"a"), [], (columns, rows))
            mode.panel.inspection = None
            self.assertEqual(len(mode.press(b"d")), 1)

    @given(
        st.text(st.sampled_from("abcdefghij 日\n\t\x1b"), max_size=400),
        st.integers(1, 60),
        st.integers(1, 20),
        st.lists(st.sampled_from((b"a", b" ", b"\r", b"j", b"k", b"b", b"A", b"n", b"#")), max_size=12),
    )
    def test_whatever_is_pressed(self, command: str, columns: int, rows: int, keys: list[bytes]) -> None:
        """An approval means that each row of the command has been on the screen."""
        mode = AgentMode(columns, rows)
        begun(mode)
        step = ProposedStep(number=1, command=command)
        mode.receive(ApprovalRequested(plan_id=PLAN, step=step, number=1, digest="d", scope=SCOPED.scope))
        shown = rows_on(mode)
        for key in keys:
            if any(isinstance(action, Approval) for action in mode.press(key)):
                whole = command_rows(command, columns - 3, mode.panel.look)
                self.assertLessEqual({unstyled(row).rstrip() for row in whole}, shown)
                return
            shown |= rows_on(mode)
