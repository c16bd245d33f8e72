from __future__ import annotations

import asyncio

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.services.asyncio_bridge import from_asyncio, to_asyncio


class FromAsyncioTests(TestCase):
    """An asyncio coroutine, awaited as a Deferred."""

    async def test_results_and_errors_come_over(self) -> None:
        async def work(value: int) -> int:
            await asyncio.sleep(0)
            return 6 // value

        self.assertEqual(await from_asyncio(work(2)), 3)
        with self.assertRaises(ZeroDivisionError):
            await from_asyncio(work(0))

    async def test_cancelling_ends_the_task(self) -> None:
        started, ended = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        working = from_asyncio(work())
        await from_asyncio(started.wait())
        working.cancel()
        with self.assertRaises(CancelledError):
            await working
        await from_asyncio(ended.wait())


class ToAsyncioTests(TestCase):
    """A Deferred, awaited by an asyncio coroutine."""

    async def test_results_and_errors_come_over(self) -> None:
        good: Deferred[int] = Deferred()
        bad: Deferred[int] = Deferred()

        async def work() -> int:
            with self.assertRaises(ZeroDivisionError):
                await to_asyncio(bad)
            return await to_asyncio(good)

        working = from_asyncio(work())
        bad.errback(ZeroDivisionError())
        good.callback(3)
        self.assertEqual(await working, 3)

    async def test_cancelling_goes_all_the_way(self) -> None:
        cancelled: list[Deferred[None]] = []
        innermost: Deferred[None] = Deferred(cancelled.append)
        waiting = asyncio.Event()

        async def work() -> None:
            waiting.set()
            await to_asyncio(innermost)

        working = from_asyncio(work())
        await from_asyncio(waiting.wait())
        working.cancel()
        with self.assertRaises(CancelledError):
            await working
        self.assertEqual(cancelled, [innermost])
