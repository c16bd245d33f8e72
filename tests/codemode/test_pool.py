from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from twisted.trial.unittest import SkipTest, SynchronousTestCase, TestCase

from ironcurtain.codemode import pool
from ironcurtain.codemode.model import CodeLimits
from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import bubblewrap
from ironcurtain.services.asyncio_bridge import from_asyncio

ONCE = """
import os, sys
from twisted.internet.asyncioreactor import install
install()
from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from ironcurtain.codemode.model import Tool, ToolReply
from ironcurtain.codemode.monty import MontyInterpreters
from ironcurtain.codemode.pool import close_pool, ever_opened

async def main():
    assert not ever_opened()
    interpreter = await MontyInterpreters(reactor)([Tool("s", "t", "", {})], lambda *call: succeed(ToolReply("yes")))
    print((await interpreter.run("s.t()")).value)
    await close_pool()

def ended(result):
    if result is not None:
        result.printTraceback()
    reactor.stop()

reactor.callWhenRunning(lambda: Deferred.fromCoroutine(main()).addBoth(ended))
reactor.run()
sys.stdout.flush()
os._exit(0 if ever_opened() else 1)
"""


class ConfinementTests(SynchronousTestCase):
    def test_it_tells_whether_bubblewrap_is_used_and_else_why_not(self) -> None:
        found = pool.confinement()
        self.assertEqual((found.bubblewrap, found.reason), (bubblewrap.available() is None, bubblewrap.available()))

    def test_the_wrapper_quotes_paths_and_hands_arguments_on(self) -> None:
        script = pool.wrapper("/some where/mon'ty")
        self.assertEqual(script.count("\n"), 2)
        self.assertTrue(script.startswith("#!/bin/sh\nexec /"))
        self.assertIn("'/some where/mon'\"'\"'ty' \"$@\"", script)
        self.assertIn("--unshare-all", script)
        self.assertNotIn("--share-net", script)


class PoolTests(TestCase):
    async def test_workers_run_inside_bubblewrap_where_it_works(self) -> None:
        if not pool.confinement().bubblewrap:
            self.skipTest(str(pool.confinement().reason))
        own = pool.Pool()
        session = await from_asyncio(own.checkout({}, CodeLimits()))
        started = Path(f"/proc/{session.worker_pid}/exe").resolve()
        self.assertEqual(started.name, "bwrap")
        directory = own._opened[None].directory
        assert directory is not None
        self.assertEqual(os.stat(directory).st_mode & 0o777, 0o700)
        await from_asyncio(session.__aexit__(None, None, None))
        await from_asyncio(own.close())
        self.assertFalse(os.path.exists(directory))

    async def test_closing_twice_and_opening_again(self) -> None:
        own = pool.Pool()
        await from_asyncio(own.close())
        self.assertFalse(own.ever_opened)
        for _ in range(2):
            session = await from_asyncio(own.checkout({}, CodeLimits()))
            self.assertEqual(await from_asyncio(session.feed_run("1 + 1")), 2)
            await from_asyncio(session.__aexit__(None, None, None))
            await from_asyncio(own.close())
        self.assertTrue(own.ever_opened)

    async def test_two_sessions_at_once_open_one_pool(self) -> None:
        own = pool.Pool()
        openings = [from_asyncio(own.checkout({}, CodeLimits())) for _ in range(2)]
        sessions = [await opening for opening in openings]
        self.assertEqual(len({session.worker_pid for session in sessions}), 2)
        for session in sessions:
            await from_asyncio(session.__aexit__(None, None, None))
        await from_asyncio(own.close())


class OtherAccountTests(TestCase):
    """Root's sessions: their workers are somebody else, in bubblewrap or out of it."""

    account = Account(4242, 4243)

    def setUp(self) -> None:
        if os.geteuid():
            raise SkipTest("only root can start programs as somebody else")

    async def test_a_worker_is_the_account(self) -> None:
        if reason := bubblewrap.available(self.account):
            raise SkipTest(reason)
        own = pool.Pool()
        ours = await from_asyncio(own.checkout({}, CodeLimits()))
        theirs = await from_asyncio(own.checkout({}, CodeLimits(), self.account))
        self.assertEqual(await from_asyncio(theirs.feed_run("6 * 7")), 42)
        self.assertEqual(ids(int(theirs.worker_pid or 0)), {"4242"})
        self.assertEqual(ids(int(ours.worker_pid or 0)), {"0"})
        for session in (ours, theirs):
            await from_asyncio(session.__aexit__(None, None, None))
        await from_asyncio(own.close())

    def test_without_bubblewrap_it_is_the_account_or_nothing(self) -> None:
        setpriv, account = shutil.which("setpriv"), Account(4244, 4245)  # not asked about bubblewrap before
        assert setpriv is not None
        with TemporaryDirectory() as top:
            Path(top, "setpriv").symlink_to(setpriv)
            self.patch(os, "environ", {**os.environ, "PATH": top})
            program = Path(top, "monty")
            program.write_text("#!/bin/sh\nid -u; id -G; echo $1\n")
            program.chmod(0o755)
            error = self.assertRaises(Unavailable, pool.wrapper, str(program), account)
            self.assertIn("uid 4244, as whom this session runs, cannot execute", str(error))
            Path(top).chmod(0o755)
            script = Path(top, "script")
            script.write_text(pool.wrapper(str(program), account))
            done = subprocess.run(["/bin/sh", script, "x"], env={}, capture_output=True, timeout=60, check=True)
        self.assertEqual(done.stdout, b"4244\n4245\nx\n")


def ids(pid: int) -> set[str]:
    """:returns: the real, effective, saved and file uids of the last process below one, as the system tells."""
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        pid = int(children[0])
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return set(next(line for line in lines if line.startswith("Uid:")).split()[1:])


class ExitTests(SynchronousTestCase):
    def once(self, **environment: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", ONCE],
            capture_output=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **environment},
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stdout), (0, b"yes\n"), done.stderr)

    def test_a_process_that_used_it_ends_well(self) -> None:
        for _ in range(3):
            self.once()

    def test_without_bubblewrap_it_works_too(self) -> None:
        with TemporaryDirectory() as empty:
            self.once(PATH=empty)
