"""A program that shows a terminal of another process: ``python at_viewer.py SOCKET TOKEN MODE``."""

from __future__ import annotations

import sys
from typing import Any

from twisted.internet.asyncioreactor import install
from twisted.internet.defer import Deferred

from ironcurtain.errors import IronCurtainError
from ironcurtain.terminal.keys import QUIT, Keys
from ironcurtain.terminal.local import LocalTerminal
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.viewing import attach
from ironcurtain.terminal.wire import Hello


async def show(reactor: Any, path: str, token: str, mode: str) -> None:
    """Attach, and say how it ended."""
    terminal = LocalTerminal(reactor)
    hello = Hello("7", Mode(mode), *terminal.size(), token)
    try:
        ended = await attach(reactor, path, hello, terminal, Keys((QUIT,)), lambda name, viewing: viewing.leave(name))
        print(f"[{ended.reason}: {ended.status}]")
    except IronCurtainError as e:
        print(f"[{e.code}: {e}]")


def main() -> None:
    """Run until the end."""
    install()
    from twisted.internet import reactor as installed

    reactor: Any = installed

    def begin() -> None:
        shown = Deferred.fromCoroutine(show(reactor, *sys.argv[1:]))
        shown.addBoth(lambda result: (print(result or ""), reactor.stop()))

    reactor.callWhenRunning(begin)
    reactor.run()


if __name__ == "__main__":
    main()
