"""Agents above and below one on this machine, and what they use of its budget."""

from __future__ import annotations

import json
import os

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, SessionError, UsageError
from ironcurtain.home.layout import find_home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.llm.model import TokenUsage
from ironcurtain.process.identity import identify
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter
from ironcurtain.shell.inheritance import VARIABLE, AgentPolicies, as_variable
from ironcurtain.shell.messages import InstructionDone
from ironcurtain.shell.nesting import Nesting, agents_above, policies_above, working
from ironcurtain.shell.session_budget import SessionBudget
from tests.audit.doubles import scratch
from tests.shell.test_narrowing import NARROW, WIDE


class NestingCase(SynchronousTestCase):
    """A home with sessions of agents."""

    def setUp(self) -> None:
        self.home = find_home({"HOME": str(scratch(self))}, os.geteuid())
        self.home.prepare()

    def agent(self, session_id: str, pid: int, kind: str = "shell") -> SessionPaths:
        """
        A session is live.

        :returns: its files.
        """
        paths = self.home.session(session_id)
        paths.directory.mkdir(parents=True)
        owner = identify(pid)
        entry = SessionEntry(
            session_id=session_id,
            escalation_dir="",
            label="",
            started_at="",
            pid=pid,
            pid_start_time=owner.start_time,
            boot_id=owner.boot_id,
            kind=kind,
        )
        SessionRegistry(self.home.registry).add(entry)
        return paths

    def parent(self, policies: AgentPolicies) -> SessionPaths:
        """:returns: files of a session of the process above this one, whose agent leaves this."""
        paths = self.agent("parent", os.getppid())
        Nesting(paths, (), policies).leave(None, None)
        return paths

    def found(self, **environ: str) -> AgentPolicies:
        """:returns: what those above leave."""
        return policies_above(agents_above(self.home), environ)


class AboveTests(NestingCase):
    """Agents are found by their processes."""

    def test_none_is_above(self) -> None:
        self.agent("ours", os.getpid())
        self.agent("other", os.getppid(), kind="loop")
        self.assertEqual(self.found(), AgentPolicies())

    def test_what_it_left_is_read(self) -> None:
        both = AgentPolicies().joined(NARROW).joined(NARROW).joined(WIDE)
        self.assertEqual((both.tables, both.depth), ((NARROW, WIDE), 3))
        paths = self.parent(both)
        self.assertEqual(self.found(), both)
        self.assertEqual(paths.agent_policies.stat().st_mode & 0o777, 0o600)

    def test_agents_on_other_machines_count_too(self) -> None:
        self.parent(AgentPolicies().joined(NARROW))
        far = AgentPolicies().joined(WIDE).joined(NARROW)
        self.assertEqual(self.found(**{VARIABLE: as_variable(far)}), AgentPolicies((NARROW, WIDE), 2))

    def test_what_cannot_be_read_is_an_error(self) -> None:
        paths = self.agent("parent", os.getppid())
        self.assertRaises(ConfigurationError, self.found)
        paths.agent_policies.write_bytes(b'{"policies": {"tables": 1}}')
        self.assertRaises(ConfigurationError, self.found)


class BudgetTests(NestingCase):
    """What agents below use counts for those above, whoever has started them."""

    def budget(self, paths: SessionPaths, above: tuple[SessionPaths, ...], tokens: float | None) -> SessionBudget:
        """:returns: that of an agent, which costs one dollar for each request."""
        policies = policies_above(above, {})
        limits = BudgetLimits(tokens=tokens, cost=policies.cost)
        accounting = Accounting(BudgetMeter(limits), lambda usage: 1.0, lambda event: None, lambda: 0.0)
        budget = SessionBudget(accounting, False, lambda message: None, Nesting(paths, working(above), policies))
        budget.settle()
        budget.begin()
        budget.settle()
        return budget

    def setUp(self) -> None:
        super().setUp()
        self.one, self.two, self.three = (self.agent(name, 1) for name in ("one", "two", "three"))
        self.top = self.budget(self.one, (), 1000.0)

    def left(self) -> float | None:
        """:returns: tokens that the agent at the top leaves."""
        return policies_above((self.one,), {}).tokens

    def use(self, budget: SessionBudget, tokens: int) -> None:
        """The agent asks its model."""

        async def ask() -> None:
            await budget.require()
            budget.accounting.step(1, TokenUsage(input_tokens=tokens))

        failures: list[Failure] = []
        Deferred.fromCoroutine(ask()).addErrback(failures.append)
        for failure in failures:
            failure.raiseException()

    def test_they_may_use_what_is_left_now(self) -> None:
        self.use(self.top, 300)
        self.assertEqual(self.left(), 700)
        self.use(self.budget(self.two, (self.one,), None), 100)
        self.assertEqual(self.left(), 600)
        self.use(self.top, 50)
        self.assertEqual(self.left(), 550)
        turn = self.top.accounting.turn
        self.assertEqual((turn.input_tokens, turn.cost, self.top.turn_below.input_tokens), (450, 3.0, 100))

    def test_what_the_user_starts_between_instructions_has_its_own(self) -> None:
        started_by_agent = self.budget(self.two, (self.one,), None)
        self.use(self.top, 999)
        self.top.end()
        own = self.budget(self.three, (self.one,), 5000.0)
        self.use(own, 2000)
        self.use(own, 10)
        self.assertIsNone(self.left())
        self.use(started_by_agent, 1)
        with self.assertRaisesRegex(SessionError, "budget"):
            self.use(started_by_agent, 1)
        with self.assertRaisesRegex(SessionError, "budget"):
            self.use(self.top, 1)

    def test_they_share_it_while_they_run(self) -> None:
        first = self.budget(self.two, (self.one,), None)
        second = self.budget(self.three, (self.one,), None)
        self.use(first, 600)
        self.use(second, 600)
        for each in (first, second, self.top):
            with self.assertRaisesRegex(SessionError, "budget"):
                self.use(each, 1)
        with self.assertRaisesRegex(UsageError, "nothing of the budget is left"):
            self.top.narrowed(AgentPolicies())

    def test_it_counts_for_all_above_once_each(self) -> None:
        second = self.budget(self.two, (self.one,), None)
        third = self.budget(self.three, (self.two, self.one), None)
        self.use(third, 100)
        self.use(second, 10)
        self.use(self.top, 1)
        turns = [each.accounting.turn.input_tokens for each in (self.top, second, third)]
        self.assertEqual(turns, [111, 110, 100])

    def test_an_agent_that_says_at_its_end_what_it_used_is_not_counted_twice(self) -> None:
        self.use(self.budget(self.two, (self.one,), None), 100)
        said = InstructionDone(text="So.", tokens_in=100, tokens_out=0, counted=100.0)
        self.assertEqual(self.top.below(said, "it", here=True), "tokens: 100 in, 0 out")
        self.assertEqual(self.left(), 900)
        self.assertEqual(self.top.below(said, "the agent on far", here=False), "tokens: 100 in, 0 out")
        self.assertEqual(self.left(), 800)

    def test_far_agents_count_for_all_above(self) -> None:
        second = self.budget(self.two, (self.one,), None)
        second.below(InstructionDone(text="So.", tokens_in=70, tokens_out=7), "the agent on far", here=False)
        self.use(self.top, 1)
        self.assertEqual(self.left(), 1000 - 77 - 1)

    def test_estimates_count_too(self) -> None:
        self.budget(self.two, (self.one,), None).accounting.unreported(1, 250)
        self.assertEqual(self.left(), 750)

    def test_none_gives_anything_back(self) -> None:
        self.one.used_below.write_bytes(b'{"tokens_in":-5,"counted":-1e9,"cost":-3}\n')
        self.assertEqual(self.left(), 1000)
        self.use(self.top, 1)
        self.assertEqual((self.left(), self.top.accounting.turn.cost), (999, 1.0))

    def test_what_was_tampered_with_ends_instructions(self) -> None:
        child = self.budget(self.two, (self.one,), None)
        self.use(child, 10)
        self.use(self.top, 10)
        for data in (b"", b"garbage\n" * 10, b'{"counted":"x"}\n' * 10):
            self.one.used_below.write_bytes(data)
            for each in (child, self.top):
                with self.assertRaisesRegex(SessionError, "cannot be read"):
                    self.use(each, 1)

    def test_what_cannot_be_counted_ends_instructions(self) -> None:
        child = self.budget(self.two, (self.one,), None)
        self.one.used_below.symlink_to("/dev/null")
        with self.assertRaisesRegex(SessionError, "cannot be"):
            self.use(child, 1)

    def test_a_line_that_is_not_whole_waits_for_its_end(self) -> None:
        line = json.dumps({"counted": 200}).encode()
        self.one.used_below.write_bytes(line)
        self.use(self.top, 1)
        self.one.used_below.write_bytes(line + b"\n")
        self.use(self.top, 1)
        self.assertEqual(self.left(), 798)

    def test_more_that_a_person_allows_is_left_too(self) -> None:
        self.use(self.top, 999)
        self.top.accounting.budget.extend(500)
        self.top.settle()
        self.assertEqual(self.left(), 500)
