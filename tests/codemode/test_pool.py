from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from tempfile import TemporaryDirectory

from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock
from twisted.trial.unittest import SkipTest, SynchronousTestCase, TestCase

from ironcurtain.codemode import pool
from ironcurtain.codemode.model import CodeLimits
from ironcurtain.codemode.monty import MontyInterpreters
from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.spec import Kind
from ironcurtain.services.asyncio_bridge import from_asyncio
from tests.product import children

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


class WrapperTests(SynchronousTestCase):
    def test_wrapper_quotes_paths_and_passes_arguments_and_inputs(self) -> None:
        around = pool.sandbox()
        script = pool.wrapper(around, "/some where/mon'ty")
        self.assertEqual(script.count("\n"), 2)
        self.assertTrue(script.startswith("#!/bin/sh\nexec /"))
        self.assertIn("'/some where/mon'\"'\"'ty' \"$@\"", script)
        for number in programs.inputs(around):
            self.assertIn(f' {number}<"${{0%/*}}/{number}"', script)


class PoolTests(TestCase):
    async def test_workers_run_in_each_kind_of_sandbox(self) -> None:
        for kind, problem in programs.problems(pool.sandbox()):
            if problem is None:
                await self.work_in(kind)

    async def work_in(self, kind: Kind) -> None:
        own, around = pool.Pool(), pool.sandbox(kind=kind)
        session = await from_asyncio(own.checkout({}, CodeLimits(), around))
        self.assertEqual(await from_asyncio(session.feed_run("6 * 7")), 42)
        directory = own._opened[around].directory
        self.assertEqual(os.stat(directory).st_mode & 0o777, 0o700)
        await from_asyncio(session.__aexit__(None, None, None))
        await from_asyncio(own.close())
        self.assertFalse(os.path.exists(directory))

    async def test_closing_twice_and_opening_again(self) -> None:
        own = pool.Pool()
        await from_asyncio(own.close())
        self.assertFalse(own.ever_opened)
        for _ in range(2):
            session = await from_asyncio(own.checkout({}, CodeLimits(), pool.sandbox()))
            self.assertEqual(await from_asyncio(session.feed_run("1 + 1")), 2)
            await from_asyncio(session.__aexit__(None, None, None))
            await from_asyncio(own.close())
        self.assertTrue(own.ever_opened)

    async def test_process_that_was_started_before_is_used(self) -> None:
        own, around = pool.Pool(), pool.sandbox()
        await from_asyncio(own.open(around))
        before = set(children())
        session = await from_asyncio(own.checkout({}, CodeLimits(), around))
        self.assertIn(session.worker_pid, before)
        await from_asyncio(session.__aexit__(None, None, None))
        await from_asyncio(own.close())

    async def test_error_of_a_preparation_is_that_of_the_interpreter(self) -> None:
        self.patch(pool, "shared", pool.Pool())
        self.patch(tempfile, "tempdir", "/proc")  # nothing can be made there
        interpreters = MontyInterpreters(Clock())
        interpreters.prepare()
        with self.assertRaises(Unavailable):
            await interpreters([], lambda *call: fail(AssertionError()))

    def test_settling_is_for_processes_that_used_it(self) -> None:
        clock = Clock()
        self.patch(pool, "shared", pool.Pool())
        self.successResultOf(Deferred.fromCoroutine(pool.settle(clock)))
        pool.shared.ever_opened = True
        settled = Deferred.fromCoroutine(pool.settle(clock))
        self.assertNoResult(settled)
        clock.advance(pool.SETTLE_SECONDS)
        self.successResultOf(settled)

    async def test_two_sessions_at_once_open_one_pool(self) -> None:
        own = pool.Pool()
        openings = [from_asyncio(own.checkout({}, CodeLimits(), pool.sandbox())) for _ in range(2)]
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

    async def test_worker_runs_as_the_account_in_each_kind_of_sandbox(self) -> None:
        for kind, problem in programs.problems(pool.sandbox(self.account)):
            if problem is None:
                await self.work_in(kind)

    async def work_in(self, kind: Kind) -> None:
        own = pool.Pool()
        theirs = await from_asyncio(own.checkout({}, CodeLimits(), pool.sandbox(self.account, kind)))
        self.assertEqual(await from_asyncio(theirs.feed_run("6 * 7")), 42)
        if kind is not Kind.CONTAINER:  # whose processes are the Engine's children
            self.assertEqual(ids(int(theirs.worker_pid or 0)), {"4242"}, kind)
        await from_asyncio(theirs.__aexit__(None, None, None))
        await from_asyncio(own.close())


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
