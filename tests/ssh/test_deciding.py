"""What is decided over SSH: only what was shown, and all at once where there is too much."""

from __future__ import annotations

from ironcurtain.operations import Role
from ironcurtain.operations.api import LocalApi
from ironcurtain.operations.model import EscalationView
from ironcurtain.operations.principal import owner
from tests.ssh.test_client import SshTestCase

LOOKS = {1: (True, False), 2: (False, True)}
"""Whether a list says how to look at a long escalation, and whether its end is there: as text, and as JSON."""


class Unseen(LocalApi):
    """What is asked by a key that may not view, or of a process that answers no list in time."""

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        return []


class DecidingTests(SshTestCase):
    async def test_a_long_one_is_looked_at_before_it_is_approved(self) -> None:
        ada = self.server.listed("ada", Role.VIEW, Role.APPROVE)
        await self.session()
        number = self.ask(text="x" * 5000 + "the end")
        for words in (("escalations",), ("escalations", "--json")):
            status, out, _ = await self.said(ada, *words)
            self.assertEqual((status, f"escalations show {number}" in out, "the end" in out), (0, *LOOKS[len(words)]))
            status, _, err = await self.said(ada, "approve", str(number))
            self.assertEqual(status, 1)
            self.assertIn(f"(over SSH: escalations show {number})", err)
        status, out, _ = await self.said(ada, "escalations", "show", str(number))
        self.assertEqual((status, "the end\n" in out), (0, True))
        self.assertIn(f"to approve exactly this: approve {number} --digest ", out.splitlines()[-1])
        self.assertEqual((await self.said(ada, "approve", str(number)))[0], 0)
        self.assertEqual((await self.said(ada, "escalations", "show", "99"))[0], 69)

    async def test_lists_say_whose_sessions_they_lack(self) -> None:
        ada = self.server.listed("ada", Role.VIEW)
        self.server.lacking = ["Without 2 sessions of build-3, which is lost."]
        for command, rest in (("escalations", "No call waits for a decision."), ("sessions", "No sessions.")):
            self.assertEqual((await self.said(ada, command))[1], f"{self.server.lacking[0]}\n{rest}\n")
            self.assertEqual((await self.said(ada, command, "--json"))[1], "[]\n")

    async def test_form_is_filled_in_once_it_was_shown(self) -> None:
        ada, bob = self.server.listed("ada", Role.VIEW, Role.APPROVE), self.server.listed("bob", Role.VIEW)
        await self.session()
        number = self.ask_form()
        answer = ("answer", str(number), "name=Ada")
        self.assertEqual((await self.said(bob, *answer))[0], 77)
        for look in (("escalations", "--json"), ("escalations", "show", str(number), "--json")):
            self.assertEqual((await self.said(ada, *look))[0], 0)  # a program reads it, and no person
            self.assertIn("was not shown to you completely", (await self.said(ada, *answer))[2])
        _, out, _ = await self.said(ada, "escalations")
        self.assertIn("1. name: text, required\n", out)
        self.assertIn("name: it is required", (await self.said(ada, "answer", str(number)))[2])
        self.assertEqual((await self.said(ada, *answer))[0], 0)
        self.assertIn("too late", (await self.said(ada, *answer))[2])

    async def test_form_that_cannot_be_looked_at_is_not_sent_with_its_defaults(self) -> None:
        self.server.source = Unseen
        ada = self.server.listed("ada", Role.VIEW, Role.APPROVE)
        await self.session()
        number = self.ask_form()
        (waiting,) = self.server.operations.escalations(owner())
        said = await self.said(ada, "answer", str(number), "--digest", waiting.digest, "name=Ada")
        self.assertEqual(said[0], 69)
        self.assertIn(f"there is no form {number}, or you may not view it", said[2])
        self.assertEqual(self.server.operations.escalations(owner()), [waiting])

    async def test_all_are_denied_and_the_session_is_ended(self) -> None:
        ada = self.server.listed("ada", Role.VIEW, Role.APPROVE, Role.ATTACH)
        session = await self.session()
        numbers = [self.ask(), self.ask(remote="mirror")]
        said = await self.said(ada, "deny", "all", "--session", str(session.number))
        self.assertEqual(said, (0, f"Denied: {numbers[0]}, {numbers[1]}.\n", ""))
        self.assertEqual((await self.said(ada, "deny", "all", "--json"))[1], "[]\n")
        self.assertEqual((await self.said(ada, "deny", "all", "--session", "99"))[0], 69)
        said = await self.said(ada, "stop", str(session.number))
        self.assertEqual(said, (0, f"Session {session.number} has ended.\n", ""))
        self.assertEqual(session.state, "closed")
