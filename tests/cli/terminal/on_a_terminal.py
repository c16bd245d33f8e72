"""A program that holds a terminal and, meanwhile and afterwards, starts a child and waits for its end."""

from __future__ import annotations

import sys
from typing import Any

from twisted.internet.asyncioreactor import install
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure


class _Ended(ProcessProtocol):
    def __init__(self) -> None:
        self.ended: Deferred[None] = Deferred()

    def processEnded(self, reason: Failure) -> None:
        self.ended.callback(None)


class _Nobody:
    def typed(self, line: str, began: float, own: str = "") -> None: ...

    def interrupt(self) -> None: ...

    def input_ended(self) -> None: ...

    def lost(self, why: str) -> None: ...


async def hold(reactor: Any) -> None:
    """Hold the terminal."""
    from ironcurtain.cli.terminal.prompt import prompt_surface

    surface = prompt_surface(sys.stdin, sys.stderr, {"TERM": "xterm"}, reactor.seconds)
    surface.open(_Nobody(), True)
    try:
        await child(reactor)
    finally:
        await surface.close()
    await child(reactor)


async def child(reactor: Any) -> None:
    """Start a child without pipes, so that only the signal tells of its end, and wait for it."""
    protocol = _Ended()
    reactor.spawnProcess(protocol, "/bin/sleep", ["sleep", "0.3"], childFDs={})
    protocol.ended.addTimeout(50, reactor)
    await protocol.ended


def main() -> None:
    """The exit status is 0 if the reactor learned of both ends."""
    install()
    from twisted.internet import reactor as installed

    reactor: Any = installed
    results: list[Any] = []

    def begin() -> None:
        Deferred.fromCoroutine(hold(reactor)).addBoth(results.append).addBoth(lambda _: reactor.stop())

    reactor.callWhenRunning(begin)
    reactor.run()
    sys.exit(0 if results == [None] else 1)


if __name__ == "__main__":
    main()
