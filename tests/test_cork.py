"""What waits is sent, whatever happens to what waits before it."""

from __future__ import annotations

import contextlib

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cork import cork


class CorkTests(SynchronousTestCase):
    def test_what_cannot_be_sent_keeps_nobody_waiting(self) -> None:
        sent: list[str] = []

        def fail(error: BaseException) -> None:
            raise error

        for error in (ValueError("bad"), SystemExit(1)):
            cork.on = True
            cork.put_off(lambda error=error: fail(error))  # type: ignore[misc]
            cork.put_off(lambda: sent.append("another"))
            with contextlib.suppress(SystemExit):
                cork.release()
            cork.release()
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertEqual((sent, cork.on), (["another", "another"], False))
