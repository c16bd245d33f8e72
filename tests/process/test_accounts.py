"""As whom sessions run. The accounts named here are those that every Linux has: root and, nearly always, nobody."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.process.accounts import FREE_UIDS, HIGHEST_ID, SEARCH, WRITE, Account, session_account

ABSENT = HIGHEST_ID - 7
"""A uid that no system has an account for."""

SUDO = {"SUDO_UID": str(ABSENT), "SUDO_GID": "77"}


def somebody() -> pwd.struct_passwd:
    """:returns: an account of this machine that is not root."""
    for known in pwd.getpwall():
        if known.pw_uid:
            return known
    raise SkipTest("this machine has no account but root")


class OrdinaryUserTests(SynchronousTestCase):
    def test_is_the_account_whatever_else_there_is(self) -> None:
        account = session_account("", SUDO, Path("/"), 4321)
        self.assertEqual((account.uid, account.gid), (4321, os.getegid()))

    def test_may_be_named_but_nobody_else(self) -> None:
        self.assertEqual(session_account("4321", {}, None, 4321).uid, 4321)
        for other in ("0", "root", "4322"):
            error = self.assertRaises(ConfigurationError, session_account, other, {}, None, 4321)
            self.assertIn("run_as: only root can", str(error))


class RootTests(SynchronousTestCase):
    def test_the_setting_wins(self) -> None:
        known = somebody()
        for run_as in (known.pw_name, str(known.pw_uid)):
            account = session_account(run_as, SUDO, None, 0)
            self.assertEqual(account, Account(known.pw_uid, known.pw_gid, known.pw_name, known.pw_dir, named=True))
        self.assertTrue(session_account("root", SUDO, None, 0).is_root)

    def test_a_setting_that_means_nobody_is_refused(self) -> None:
        for run_as in ("no such user", "-1", "4294967295", "9" * 5000, "a\0b", "\u0661"):
            error = self.assertRaises(ConfigurationError, session_account, run_as, {}, None, 0)
            self.assertIn("run_as: there is no user", str(error))

    def test_then_the_owner_of_the_workspace(self) -> None:
        if os.geteuid():
            raise SkipTest("only root can give a directory away")
        with tempfile.TemporaryDirectory() as directory:
            os.chown(directory, ABSENT, 55)
            account = session_account("", {}, Path(directory), 0)
        self.assertEqual(account, Account(ABSENT, ABSENT))

    def test_then_who_called_sudo(self) -> None:
        for workspace in (None, Path("/")):
            self.assertEqual(session_account("", SUDO, workspace, 0), Account(ABSENT, 77))
        known = somebody()
        for gid in ("", "0", "x"):
            account = session_account("", {"SUDO_UID": str(known.pw_uid), "SUDO_GID": gid}, None, 0)
            self.assertEqual((account.uid, account.gid), (known.pw_uid, known.pw_gid))

    def test_then_a_uid_that_no_account_has(self) -> None:
        for uid in ("", "0", "-5", "x", "4294967295"):
            account = session_account("", {"SUDO_UID": uid}, Path("/"), 0)
            self.assertEqual((account.uid in FREE_UIDS, account.name, account.gid), (True, "", account.uid))
        taken = {FREE_UIDS[0], FREE_UIDS[1]}
        known = pwd.getpwuid(0)

        def getpwuid(uid: int) -> pwd.struct_passwd:
            if uid in taken:
                return known
            raise KeyError(uid)

        self.patch(pwd, "getpwuid", getpwuid)
        self.assertEqual(session_account("", {}, None, 0).uid, FREE_UIDS[2])
        taken.update(FREE_UIDS)
        error = self.assertRaises(ConfigurationError, session_account, "", {}, None, 0)
        self.assertIn("run_as: all uids for services are in use", str(error))


class AccountTests(SynchronousTestCase):
    def test_a_directory_that_it_may_write(self) -> None:
        account = Account(ABSENT, 77)
        for uid, gid, mode, wanted in (
            (ABSENT, 0, 0o700, True),
            (ABSENT, 77, 0o077, False),
            (0, 77, 0o770, True),
            (0, 77, 0o707, False),
            (0, 0, 0o777, True),
            (0, 0, 0o776, False),
            (0, 0, 0o755, False),
        ):
            status = os.stat_result((mode, 0, 0, 0, uid, gid, 0, 0, 0, 0))
            self.assertEqual(account.may(WRITE | SEARCH, status), wanted, (uid, gid, oct(mode)))
            self.assertTrue(Account(0, 0).may(WRITE | SEARCH, status))

    def test_what_root_runs_as_it_is_nobody_else(self) -> None:
        if os.geteuid():
            raise SkipTest("only root can run programs as somebody else")
        script = "id -u; id -G; grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status"
        command = Account(ABSENT, 77).command(["/bin/sh", "-c", script])
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()
        self.assertEqual(said[:2], [str(ABSENT), "77"])
        self.assertEqual({int(word, 16) for word in said[3::2]}, {0})
