"""What people see who come with OpenSSH's client."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.escalation import Outcome, Scope
from ironcurtain.operations import Role
from ironcurtain.ssh import transport
from tests.audit.doubles import scratch
from tests.escalation.doubles import make_scope
from tests.operations.test_operations import FORM
from tests.programs import program
from tests.session.doubles import make_request, request
from tests.ssh.doubles import Server, make_holder


class SshTestCase(TestCase):
    timeout = 180

    def setUp(self) -> Deferred[None]:  # type: ignore[override]  # the stubs know only the synchronous kind
        program("ssh")
        self.server = Server(scratch(self))
        self.addCleanup(self.run_it, self.server.stop)
        return Deferred.fromCoroutine(self.server.start())

    def run_it(self, work: Any) -> Deferred[None]:
        return Deferred.fromCoroutine(work())

    async def session(self) -> Any:
        """:returns: a session, with a number."""
        session = await self.server.world.manager.create(request())
        self.addCleanup(self.run_it, lambda: self.server.world.manager.close(session, "over"))
        return session

    def ask(self, scope: Scope | None = None, **arguments: str) -> int:
        """:returns: the number of a new escalation."""
        core = self.server.world.agents[-1].core
        assert core is not None
        core.escalations.ask(make_request(core, arguments or None, scope=scope)).addErrback(lambda _: None)
        return core.escalations.pending()[-1].number

    def ask_form(self) -> int:
        """:returns: the number of a new form."""
        core = self.server.world.agents[-1].core
        assert core is not None
        core.escalations.ask(replace(make_request(core), form=FORM)).addErrback(lambda _: None)
        return core.escalations.pending()[-1].number

    async def said(self, holder: Any, *words: str) -> tuple[int | None, str, str]:
        """:returns: status, output and errors of a command."""
        client = await self.server.ssh(holder, "--", *words).ended
        return client.status, client.out.decode(), client.err.decode()


class CommandTests(SshTestCase):
    async def test_sessions(self) -> None:
        ada = self.server.listed("ada", Role.VIEW)
        self.assertEqual(await self.said(ada, "sessions"), (0, "No sessions.\n", ""))
        session = await self.session()
        status, out, _ = await self.said(ada, "sessions")
        self.assertEqual(status, 0)
        self.assertEqual(out.splitlines()[0].split(), ["N", "STATE", "AGE", "WAITING", "SESSION"])
        self.assertEqual(out.splitlines()[1].split()[:2], [str(session.number), "ready"])
        status, out, _ = await self.said(ada, "sessions", "--json")
        self.assertEqual([info["id"] for info in json.loads(out)], [session.id])

    async def test_last_is_the_newest_that_runs(self) -> None:
        ada = self.server.listed("ada@laptop", Role.ADMIN)
        self.assertEqual((await self.said(ada, "stop", "last"))[0], 69)
        older, newer = await self.session(), await self.session()
        for session in (newer, older):
            self.assertEqual(await self.said(ada, "stop", "last"), (0, f"Session {session.number} has ended.\n", ""))

    async def test_escalations_are_decided_in_the_name_of_the_key(self) -> None:
        ada = self.server.listed("ada@laptop", Role.VIEW, Role.APPROVE)
        session = await self.session()
        first, second = self.ask(), self.ask(remote="mirror")
        status, out, _ = await self.said(ada, "escalations")
        self.assertEqual(status, 0)
        self.assertIn(f"{first}  git.push", out)
        self.assertIn("remote = origin", out)
        status, out, _ = await self.said(ada, "approve", str(first))
        self.assertEqual((status, out), (0, f"Approved: git.push in session {session.number}.\n"))
        status, out, _ = await self.said(ada, "deny", str(second), "--json")
        self.assertEqual((status, json.loads(out)["by"], json.loads(out)["outcome"]), (0, "ada@laptop", "denied"))
        self.assertEqual({e.outcome for e in session.escalations.history()}, {Outcome.APPROVED, Outcome.DENIED})
        self.assertEqual(await self.said(ada, "escalations"), (0, "No call waits for a decision.\n", ""))
        status, out, _ = await self.said(ada, "escalations", "--all", "--json")
        self.assertEqual([view["number"] for view in json.loads(out)], [first, second])
        status, _, err = await self.said(ada, "deny", str(first))
        self.assertEqual(status, 1)
        self.assertIn("ada@laptop", err)

    async def test_an_approval_is_kept_listed_and_revoked(self) -> None:
        ada = self.server.listed("ada@laptop", Role.VIEW, Role.APPROVE)
        viewer = self.server.listed("viewer", Role.VIEW)
        await self.session()
        self.assertEqual(await self.said(viewer, "permissions"), (0, "No kept approvals.\n", ""))
        number = self.ask(make_scope())
        _, out, _ = await self.said(viewer, "escalations")
        self.assertIn("an approval can be kept for: git.push in /srv/src and below", out)
        self.assertEqual((await self.said(viewer, "approve", str(number), "--keep"))[0], 77)
        status, _, err = await self.said(ada, "approve", str(number), "--keep")
        self.assertEqual(status, 1)
        self.assertIn(f"escalation {number} was not shown to you completely", err)  # but to somebody else
        await self.said(ada, "escalations")
        status, out, _ = await self.said(ada, "approve", str(number), "--keep")
        self.assertEqual(status, 0)
        self.assertIn("From now on nobody is asked about: git.push in /srv/src and below.", out)
        _, out, _ = await self.said(viewer, "permissions")
        self.assertEqual(out.splitlines()[0], f"{number}  git.push in /srv/src and below")
        self.assertIn("kept by ada@laptop", out)
        self.assertEqual((await self.said(viewer, "revoke", str(number)))[0], 77)
        status, out, _ = await self.said(ada, "revoke", str(number), "--json")
        self.assertEqual((status, json.loads(out)["number"]), (0, number))
        self.assertEqual((await self.said(ada, "revoke", str(number)))[0], 69)

    async def test_a_wrong_digest_approves_nothing(self) -> None:
        ada = self.server.listed("ada")
        session = await self.session()
        number = self.ask()
        status, _, _ = await self.said(ada, "approve", str(number), "--digest", "0" * 64)
        self.assertEqual(status, 1)
        self.assertEqual([e.number for e in session.escalations.pending()], [number])

    async def test_logs_and_audit(self) -> None:
        ada = self.server.listed("ada", Role.VIEW)
        session = await self.session()
        paths = self.server.home.session(session.id)
        with paths.log.open("ab") as log:
            log.write(b"a line\x1b[2J\nthe last one")
        status, out, _ = await self.said(ada, "logs", str(session.number))
        self.assertEqual((status, out.splitlines()[-2:]), (0, ["a line\\x1b[2J", "the last one"]))
        status, out, _ = await self.said(ada, "logs", session.id, "--json")
        self.assertEqual(json.loads(out.splitlines()[-2]), "a line\x1b[2J")
        status, out, _ = await self.said(ada, "audit", str(session.number), "--json")
        self.assertEqual((status, out), (0, paths.audit.read_text()))
        status, out, _ = await self.said(ada, "audit", "last")
        self.assertEqual((status, len(out.splitlines())), (0, len(paths.audit.read_text().splitlines())))

    async def test_roles(self) -> None:
        viewer, approver = self.server.listed("viewer", Role.VIEW), self.server.listed("approver", Role.APPROVE)
        session = await self.session()
        number = self.ask()
        for words in (("approve", str(number)), ("deny", str(number))):
            status, out, err = await self.said(viewer, *words)
            self.assertEqual((status, out), (77, ""))
            self.assertEqual(err, "ironcurtain: viewer may not do this: it needs the role approve\n")
        for command in ("sessions", "escalations", "logs last", "audit 1", "report 1"):
            self.assertEqual((await self.said(approver, command))[0], 77, command)
        self.assertEqual([e.number for e in session.escalations.pending()], [number])
        client = await self.server.ssh(viewer, "-tt", "--", "attach", "1").ended
        self.assertEqual(client.status, 77)

    async def test_exit_statuses(self) -> None:
        ada = self.server.listed("ada")
        for words, wanted in (
            (("dance",), 64),
            (("sessions", "--xml"), 64),
            (("approve", "x"), 64),
            (("approve", "99"), 69),
            (("logs", "99"), 69),
            (("attach", "1"), 64),
        ):
            status, out, err = await self.said(ada, *words)
            self.assertEqual((status, out, err.count("\n")), (wanted, "", 1), words)
            self.assertTrue(err.startswith("ironcurtain: "), err)
        client = await self.server.ssh(ada, "-tt", "--", "attach", "99").ended
        self.assertEqual(client.status, 69)
        self.assertIn(b"no session 99", client.err)
        self.assertTrue(client.err.startswith(b"ironcurtain: "))


class TerminalTests(SshTestCase):
    async def test_the_console(self) -> None:
        ada = self.server.listed("ada", Role.VIEW)
        client = self.server.ssh(ada, terminal=(80, 24))
        await client.until(b"console for ada")
        await client.until(b"xterm-256color")
        client.type(b"x")
        await client.until(b"typed b'x'")
        client.type(b"q")
        await client.ended
        self.assertEqual(client.status, 7)

    async def test_without_a_terminal_there_is_no_console(self) -> None:
        ada = self.server.listed("ada")
        for words in (("-T",), ()):
            client = await self.server.ssh(ada, *words).ended
            self.assertEqual((client.status, client.out), (64, b""))
            (line,) = [line for line in client.err.splitlines() if not line.startswith(b"Pseudo-terminal")]
            self.assertTrue(line.startswith(b"ironcurtain: the console needs a terminal (ssh -t)"), line)
        self.assertEqual(self.server.speakers, [])

    async def test_a_window_change_arrives(self) -> None:
        ada = self.server.listed("ada")
        await self.session()
        client = self.server.ssh(ada, "-t", "--", "attach", "1", terminal=(80, 24))
        await client.until(b"drive ")
        client.resize(121, 37)
        await client.until(b"resized 121x37")
        self.assertEqual(self.server.speakers[0].channel.size(), (121, 37))
        client.resize(0, 0)
        await client.until(b"resized 80x24")
        client.kill()
        await client.ended

    async def test_observe(self) -> None:
        ada = self.server.listed("ada", Role.VIEW)
        await self.session()
        client = self.server.ssh(ada, "-t", "--", "observe", "1", terminal=(80, 24))
        await client.until(b"observe ")
        client.kill()
        await client.ended

    async def test_the_end_of_input_ends_nothing(self) -> None:
        ada = self.server.listed("ada")
        await self.session()
        client = self.server.ssh(ada, "-n", "-tt", "--", "attach", "1")
        await client.until(b"drive ")
        self.server.speakers[0].say("still here")
        await client.until(b"still here")
        self.server.speakers[0].channel.close(3)
        await client.ended
        self.assertEqual(client.status, 3)

    async def test_two_terminals_of_one_connection_are_apart(self) -> None:
        ada = self.server.listed("ada")
        control = ("-o", f"ControlPath={self.server.path / 'c'}")
        first = self.server.ssh(ada, "-o", "ControlMaster=yes", *control, terminal=(100, 30))
        await first.until(b"console for ada (100, 30)")
        second = self.server.ssh(ada, *control, terminal=(66, 22))
        await second.until(b"console for ada (66, 22)")
        first.resize(101, 31)
        await first.until(b"resized 101x31")
        self.assertEqual([s.channel.size() for s in self.server.speakers], [(101, 31), (66, 22)])
        self.assertEqual(len(self.live()), 1)
        second.type(b"q")
        await second.ended
        first.type(b"y")
        await first.until(b"typed b'y'")
        self.assertNotIn(b"101x31", second.out)
        self.assertEqual((second.status, first.status), (7, None))
        first.type(b"q")
        await first.ended

    async def test_a_bug_in_a_program_ends_its_channel(self) -> None:
        ada = self.server.listed("ada")
        client = self.server.ssh(ada, terminal=(80, 24))
        await client.until(b"console for ada")
        client.type(b"b")
        await client.ended
        self.assertEqual(client.status, 69)
        self.assertIn(b"internal error: see the log", client.out)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertTrue(self.server.speakers[0].was_lost)

    def live(self) -> Any:
        assert self.server.service.connections is not None
        return self.server.service.connections.live


class BulkTests(SshTestCase):
    async def test_all_of_it_arrives_in_order_with_new_keys_on_the_way(self) -> None:
        """What wakes a program that filled the window exactly, and what waits during a key exchange."""
        ada = self.server.listed("ada")
        lines = 160_000
        client = self.server.ssh(ada, "-v", "-tt", "-o", "RekeyLimit=1M", "--", "attach", f"bulk{lines}")
        await client.ended
        self.assertEqual(client.status, 0)
        self.assertEqual(client.out, b"".join(b"%063d\n" % number for number in range(lines)))
        self.assertGreater(client.err.count(b"SSH2_MSG_NEWKEYS received"), 5)

    async def test_the_service_itself_asks_for_new_keys(self) -> None:
        self.patch(transport, "REKEY_BYTES", 2**20)
        ada = self.server.listed("ada")
        lines = 80_000
        client = self.server.ssh(ada, "-v", "-tt", "--", "attach", f"bulk{lines}")
        await client.ended
        self.assertEqual((client.status, len(client.out)), (0, lines * 64))
        self.assertGreater(client.err.count(b"SSH2_MSG_NEWKEYS received"), 3)

    async def test_a_client_that_does_not_read_stops_the_program(self) -> None:
        ada = self.server.listed("ada")
        client = self.server.ssh(ada, "-tt", "--", "attach", "bulk2000000")
        await client.until(b"0" * 40)
        terminal: Any = client.transport
        terminal.pauseProducing()
        (bulk,) = self.server.bulk
        for _ in range(3):
            self.assertEqual((await self.server.ssh(ada, "--", "sessions").ended).status, 0)
        self.assertTrue(bulk.channel.blocked)
        self.assertLess(bulk.written, 1_000_000)
        terminal.resumeProducing()
        client.kill()
        await client.ended


class LoginTests(SshTestCase):
    async def test_an_rsa_key_signs_with_sha2(self) -> None:
        old = self.server.listed("old", rsa=True)
        client = await self.server.ssh(old, "-vvv", "--", "sessions").ended
        self.assertEqual(client.status, 0)
        self.assertIn(b"server-sig-algs=<ssh-ed25519,", client.err)
        self.assertRegex(bytes(client.err), rb"signing using rsa-sha2-512")
        client = await self.server.ssh(old, "-o", "PubkeyAcceptedAlgorithms=ssh-rsa", "--", "sessions").ended
        self.assertEqual(client.status, 255)

    async def test_a_key_that_is_not_listed_signs_nothing(self) -> None:
        self.server.listed("ada")
        stranger = make_holder(self.server.path, "stranger")
        client = await self.server.ssh(stranger, "-v", "--", "sessions").ended
        self.assertEqual(client.status, 255)
        self.assertIn(b"Offering public key", client.err)
        self.assertNotIn(b"Server accepts key", client.err)
        self.assertIn(b"Permission denied (publickey).", client.err)

    async def test_what_is_negotiated(self) -> None:
        self.patch(transport, "OFFER_SECONDS", 60.0)  # a client that is slow would be taken for one that waits for ours
        ada = self.server.listed("ada")
        client = await self.server.ssh(ada, "-vv", "--", "sessions").ended
        self.assertRegex(bytes(client.err), rb"kex: algorithm: (curve25519|mlkem768x25519)-sha256")
        self.assertIn(b"kex: host key algorithm: ssh-ed25519", client.err)
        self.assertRegex(bytes(client.err), rb"cipher: aes(128|192|256)-ctr MAC: hmac-sha2-(256|512) compression: none")
        counter_mode = ("-o", "Ciphers=aes256-cbc,aes192-ctr")
        client = await self.server.ssh(ada, "-vv", *counter_mode, "--", "sessions").ended
        self.assertEqual(client.status, 0)
        self.assertRegex(bytes(client.err), rb"cipher: aes192-ctr MAC: hmac-sha2-(256|512) compression: none")
        for options in (
            ("-o", "Ciphers=aes256-cbc"),
            (*counter_mode, "-o", "MACs=hmac-sha1"),
            (*counter_mode, "-o", "MACs=hmac-sha2-256-etm@openssh.com"),
            ("-o", "KexAlgorithms=diffie-hellman-group14-sha1"),
        ):
            client = await self.server.ssh(ada, *options, "--", "sessions").ended
            self.assertEqual(client.status, 255, options)
            self.assertIn(b"Unable to negotiate", client.err)

    async def test_only_sessions(self) -> None:
        ada = self.server.listed("ada")
        client = await self.server.ssh(ada, "-W", "127.0.0.1:1").ended
        self.assertEqual(client.status, 255)
        self.assertIn(b"open failed: administratively prohibited", client.err)
        client = await self.server.ssh(ada, "-s", "--", "sftp").ended
        self.assertNotEqual(client.status, 0)
        client = await self.server.ssh(ada, "-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:127.0.0.1:1").ended
        self.assertEqual(client.status, 255)

    async def test_a_removed_key_is_cut_off(self) -> None:
        ada, bob = self.server.listed("ada"), self.server.listed("bob")
        client, other = self.server.ssh(ada, terminal=(80, 24)), self.server.ssh(bob, terminal=(80, 24))
        await client.until(b"console for ada")
        await other.until(b"console for bob")
        self.server.keys.remove("ada")
        await client.ended
        self.assertEqual(client.status, 69)
        self.assertIn(b"this key is no longer listed", client.out)
        self.assertIn(b"\x1b[?1049l", client.out)
        other.type(b"x")
        await other.until(b"typed b'x'")
        self.assertEqual((await self.server.ssh(ada, "--", "sessions").ended).status, 255)

    async def test_other_roles_end_the_connection_too(self) -> None:
        ada = self.server.listed("ada")
        client = self.server.ssh(ada, terminal=(80, 24))
        await client.until(b"console for ada")
        self.server.keys.path.write_text(ada.key.line.replace("admin", "view") + "\n")
        await client.ended
        self.assertIn(b"the roles of this key have changed", client.out)
        self.assertEqual((await self.said(ada, "approve", "1"))[0], 77)

    async def test_another_name_ends_the_connection_too(self) -> None:
        ada = self.server.listed("ada")
        client = self.server.ssh(ada, terminal=(80, 24))
        await client.until(b"console for ada")
        self.server.keys.path.write_text(ada.key.line.removesuffix("ada") + "lovelace\n")
        await client.ended
        self.assertIn(b"this key has another name now", client.out)

    async def test_a_file_that_others_can_write_lets_nobody_in(self) -> None:
        ada = self.server.listed("ada")
        self.server.keys.path.chmod(0o620)
        self.assertEqual((await self.server.ssh(ada, "--", "sessions").ended).status, 255)
        self.server.keys.path.chmod(0o600)
        self.assertEqual((await self.server.ssh(ada, "--", "sessions").ended).status, 0)

    async def test_the_service_ends_with_a_word(self) -> None:
        ada = self.server.listed("ada")
        client = self.server.ssh(ada, terminal=(80, 24))
        await client.until(b"console for ada")
        await self.server.service.stop()
        await client.ended
        self.assertIn(b"IronCurtain has stopped", client.out)
        self.assertTrue(self.server.speakers[0].was_lost)
