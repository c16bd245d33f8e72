"""The hand-worked verdicts, each on real directories and links."""

from __future__ import annotations

import copy
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.verdict import Verdict
from tests.policy.worlds import CASES, World, filled


def judged(case: dict[str, Any], world: World) -> Verdict:
    """:returns: the engine's verdict on one case."""
    policy = copy.deepcopy(CASES["policies"][case["policy"]])
    engine = world.engine(policy.pop("rules"), domains=case.get("serverDomains"), **policy)
    call = case["call"]
    directory = case.get("gitWorkingDirectory")
    return world.ask(engine, call["server"], call["tool"], call["arguments"], git_directory=directory)


class CaseTests(SynchronousTestCase):
    """One test a case is made below."""

    def check(self, case: dict[str, Any]) -> None:
        """Hold one verdict against what was expected."""
        world = World.make(CASES["trees"][case["tree"]])
        self.addCleanup(world.remove)
        verdict, expected = judged(case, world), case["expect"]
        self.assertEqual(verdict.decision, expected["decision"], case["why"])
        rules = CASES["reasonClasses"].get(expected["rule"], [expected["rule"]])
        self.assertTrue("*" in rules or verdict.rule in rules, f"{verdict.rule}: {case['why']}")
        if "forwarded" in expected:
            wanted = case["call"]["arguments"] if expected["forwarded"] == "unchanged" else expected["forwarded"]
            self.assertEqual(verdict.arguments, filled(wanted, world.names), case["why"])


def _test(case: dict[str, Any]) -> Any:
    def run(self: CaseTests) -> None:
        self.check(case)

    run.__doc__ = case["why"]
    return run


for _case in CASES["cases"]:
    setattr(CaseTests, f"test_{_case['id'].replace('-', '_')}", _test(_case))
