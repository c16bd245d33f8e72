"""The commands of the input line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.commands import (
    Decide,
    DecideAll,
    Filter,
    GoTo,
    Help,
    Permissions,
    Quit,
    Revoke,
    Section,
    Start,
    Wrong,
    parse,
)
from ironcurtain.escalation import Outcome


class ParseTests(SynchronousTestCase):
    """Lines that a person types."""

    def test_each_command(self) -> None:
        expected = {
            "/approve 7": Decide(Outcome.APPROVED, 7),
            " /deny  7 ": Decide(Outcome.DENIED, 7),
            "/approve 7 keep": Decide(Outcome.APPROVED, 7, keep=True),
            "/permissions": Permissions(),
            "/revoke 7": Revoke(7),
            "/approve all": DecideAll(Outcome.APPROVED),
            "/deny all": DecideAll(Outcome.DENIED),
            "/sessions": GoTo(Section.SESSIONS),
            "/escalations": GoTo(Section.WAITING),
            "/history": GoTo(Section.HISTORY),
            "/filter two words": Filter("two words"),
            "/filter": Filter(""),
            "/start": Start(),
            "/start don't stop  here": Start("don't stop  here"),
            "/start --workspace ~/x --agent codex go on": Start("go on", "codex", "~/x"),
            "/start --workspace ~": Start(workspace="~"),
            "/help": Help(),
            "/quit": Quit(),
        }
        self.assertEqual({line: parse(line) for line in expected}, expected)

    def test_what_is_wrong_says_what_to_type(self) -> None:
        for line in ("/approve", "/approve x", "/approve 1 2", "/approve -1", "/approve ²", f"/approve {'9' * 16}"):
            self.assertEqual(parse(line), Wrong("which one? Type /approve and its number, or /approve all"), line)
        for line in ("/deny 1 keep", "/approve all keep", "/approve 1 keeps", "/approve keep"):
            self.assertIsInstance(parse(line), Wrong, line)
        for line in ("/revoke", "/revoke x", "/revoke 1 2"):
            self.assertEqual(parse(line), Wrong("which one? /permissions lists the numbers"), line)
        self.assertEqual(parse("/start --agent"), Wrong("--agent needs a value"))
        self.assertEqual(
            parse("/start --pty go on"),
            Wrong("/start has no option --pty: there are --agent and --workspace, before TASK"),
        )
        for line in ("/start --workspace x", "/start --workspace ~ada/x", "/start --workspace ."):
            self.assertRegex(str(parse(line)), "begin the workspace with / or ~/")
        self.assertEqual(parse("/quit now"), Wrong("/quit takes no argument"))
        self.assertEqual(parse("/aprove 1"), Wrong("no such command: /help lists them"))

    @given(st.text() | st.builds(lambda text: f"/approve {text}", st.text()))
    def test_no_line_is_too_much(self, line: str) -> None:
        command = parse(line)
        if isinstance(command, Decide):
            self.assertIn(str(command.number), line.replace("0", "") + line)
