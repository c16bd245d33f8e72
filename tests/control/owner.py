"""Own one plain session and serve the control API, until killed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from twisted.internet.asyncioreactor import install
from twisted.internet.defer import Deferred


async def serve(reactor: Any, path: Path) -> None:
    """Print a line when the session is there and the socket listens."""
    from ironcurtain.control.listening import listen
    from ironcurtain.operations.operations import Operations
    from tests.session.doubles import World, request

    world = World(path, reactor=reactor)
    await world.manager.create(request())
    listen(reactor, path / "control.sock", Operations(world.manager))
    print("listening", flush=True)


def main() -> None:
    """Run until killed."""
    install()
    from twisted.internet import reactor

    Deferred.fromCoroutine(serve(reactor, Path(sys.argv[1])))
    reactor.run()


if __name__ == "__main__":
    main()
