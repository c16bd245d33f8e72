"""Logging in with a program in a real container, at a real terminal."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.login_files import FILE_LIMIT
from ironcurtain.container_agent.account_login import read_below
from tests import engine as test_engine
from tests.accounts.samples import CLAUDE_ACCESS, claude_file
from tests.audit.doubles import open_files
from tests.mitm_proxy.waiting import until
from tests.terminal.ptys import PtyCase

TOP = Path(__file__).parent.parent.parent

KEEP = f"mkdir -p ~/.claude; cat >~/.claude/.credentials.json <<'E'\n{claude_file().decode()}\nE\n"
"""Keeps a login."""

KEPT = f"kept Claude subscription (max) | {CLAUDE_ACCESS[:16]} end".encode()

ASK = f"printf 'code: '; read -r code; echo got $code; {KEEP}"
"""Asks as Claude Code does."""


class LoginCase(PtyCase):
    """Logs in at a terminal, with a home of the test's."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = test_engine.engine()
        self.home = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.home)

    def log_in(self, account: str, image: str, **facts: object) -> None:
        """Begin the login with a program of an image."""
        known = {"engine": self.engine, "home": str(self.home), "account": account, "image": image, **facts}
        run = shlex.join([sys.executable, str(TOP / "tests/container_agent/at_login.py"), json.dumps(known)])
        self.shell(f"cd {TOP}; PYTHONPATH={TOP} exec {run} 2>&1")

    def left(self) -> list[str]:
        """:returns: what logins in progress have in the home, and in the Engine."""
        working = [str(path) for path in self.home.glob("accounts/working/*")]
        filters = f'{{"label":["ironcurtain.home={self.home}"]}}'
        (found,) = test_engine.call("GET", f"/containers/json?all=1&filters={filters}")
        (networks,) = test_engine.call("GET", f"/networks?filters={filters}")
        (volumes,) = test_engine.call("GET", f"/volumes?filters={filters}")
        names = [each["Name"] for each in (*networks, *(volumes["Volumes"] or ()))]
        return [*working, *(str(path) for path in self.home.glob("run/*")), *(each["Id"] for each in found), *names]


class LoginTests(LoginCase):
    def begin(self, script: str, ends: bool = True, sockets: str = "auto") -> None:
        image = test_engine.image("python3", "socat") if sockets == "tcp" else test_engine.image()
        self.log_in("claude", image, script=script, ends=ends, sockets=sockets)

    async def test_code_is_typed_and_the_login_is_kept_and_nothing_else(self) -> None:
        self.begin(ASK)
        await self.watcher.shows(b"code: ")
        self.pty.write(b"abc#def\r")
        await self.watcher.shows(KEPT)
        self.assertIn(b"got abc#def", self.watcher.seen)
        await self.pty.done
        self.assertEqual(self.left(), [])

    async def test_program_that_goes_on_is_ended_when_the_login_is_complete(self) -> None:
        self.begin(f"{KEEP} exec sleep 1000", ends=False)
        await self.watcher.shows(KEPT)
        await self.pty.done
        self.assertEqual(self.left(), [])

    async def test_interrupted_login_keeps_nothing(self) -> None:
        self.begin(ASK)
        await self.watcher.shows(b"code: ")
        self.pty.write(b"\x03")
        await self.watcher.shows(b" end\r\n")
        self.assertIn(b"error nobody logged in, and nothing was kept", self.watcher.seen)
        await self.pty.done
        self.assertEqual(self.left(), [])

    async def test_what_a_killed_login_left_is_removed_by_the_next(self) -> None:
        self.begin(f"{KEEP} echo ready; exec sleep 1000")
        await self.watcher.shows(b"ready")
        pid = self.pty.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        await self.pty.done
        await until(lambda: len(self.left()) == 3)
        self.make_pty(self.reactor)
        self.watcher.seen = b""
        self.begin("exit 3")
        await self.watcher.shows(b" end\r\n")
        self.assertIn(b"removed the container", self.watcher.seen)
        self.assertIn(b"nothing was kept: the program ended: exit status 3", self.watcher.seen)
        await self.pty.done
        self.assertEqual(self.left(), [])

    async def test_sidecar_of_a_killed_login_is_removed_by_the_next(self) -> None:
        ask = "printf 'CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n'"
        self.begin(f"{ask} | socat -t9 - UNIX:/run/ironcurtain/mitm-proxy.sock; exec sleep 1000", sockets="tcp")
        await self.watcher.shows(b"403 Forbidden")
        pid = self.pty.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        await self.pty.done
        await until(lambda: len(self.left()) == 6)
        self.make_pty(self.reactor)
        self.watcher.seen = b""
        self.begin("exit 3")
        await self.watcher.shows(b" end\r\n")
        await self.pty.done
        self.assertEqual(self.left(), [])

    async def test_file_that_is_no_login_is_refused(self) -> None:
        self.begin("mkdir -p ~/.claude; ln -s /etc/passwd ~/.claude/.credentials.json")
        await self.watcher.shows(b" end\r\n")
        self.assertIn(b"nothing was kept", self.watcher.seen)


class ReadingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.top)
        (self.top / "a").mkdir()

    def test_regular_file_is_read_up_to_the_limit(self) -> None:
        (self.top / "a" / "f").write_bytes(b"x" * (FILE_LIMIT + 100))
        self.assertEqual(read_below(self.top, "a/f"), b"x" * (FILE_LIMIT + 1))

    def test_links_pipes_directories_and_missing_files_give_nothing(self) -> None:
        (self.top / "f").write_bytes(b"secret")
        (self.top / "a" / "link").symlink_to(self.top / "f")
        (self.top / "b").symlink_to(self.top / "a")
        (self.top / "a" / "g").write_bytes(b"x")
        os.mkfifo(self.top / "a" / "pipe")
        before = open_files(alone=True)
        for path in ("a/link", "b/g", "a/pipe", "a", "a/none", "none/none", "f/g"):
            self.assertIsNone(read_below(self.top, path), path)
        self.assertEqual(open_files(), before)
