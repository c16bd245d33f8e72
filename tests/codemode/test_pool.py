from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain import bubblewrap
from ironcurtain.bridge import from_asyncio
from ironcurtain.codemode import pool
from ironcurtain.codemode.limits import Limits

ONCE = """
import os, sys
from twisted.internet import asyncioreactor
asyncioreactor.install()
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
        session = await from_asyncio(own.checkout({}, Limits()))
        started = Path(f"/proc/{session.worker_pid}/exe").resolve()
        self.assertEqual(started.name, "bwrap")
        directory = own._directory
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
            session = await from_asyncio(own.checkout({}, Limits()))
            self.assertEqual(await from_asyncio(session.feed_run("1 + 1")), 2)
            await from_asyncio(session.__aexit__(None, None, None))
            await from_asyncio(own.close())
        self.assertTrue(own.ever_opened)

    async def test_two_sessions_at_once_open_one_pool(self) -> None:
        own = pool.Pool()
        openings = [from_asyncio(own.checkout({}, Limits())) for _ in range(2)]
        sessions = [await opening for opening in openings]
        self.assertEqual(len({session.worker_pid for session in sessions}), 2)
        for session in sessions:
            await from_asyncio(session.__aexit__(None, None, None))
        await from_asyncio(own.close())


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
