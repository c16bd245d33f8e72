"""A process that owns a session with a container, to be killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from twisted.internet.asyncioreactor import install


def main(home: str, runtime: str, uid: str) -> None:
    """Start a session of an account, let its agent write a file, print its id, and stay."""
    install()
    from twisted.internet.defer import Deferred
    from twisted.internet.task import react

    from ironcurtain.home.layout import Home
    from ironcurtain.home.sections import Resources
    from ironcurtain.home.settings import Settings
    from ironcurtain.process.accounts import Account
    from ironcurtain.session.model import SessionRequest
    from tests.container_agent.worlds import World

    async def own(reactor: Any) -> None:
        settings = Settings(resources=Resources(memory_mb=256, pids=64))
        world = World(Home(Path(home), Path(runtime)), settings, dict(os.environ))
        world.account = Account(int(uid), int(uid))
        session = await world.manager.create(SessionRequest("script"))
        await session.send("echo before the crash > /workspace/file\n")
        sys.stdout.write(f"{session.id}\n")
        sys.stdout.flush()
        await Deferred()

    react(lambda reactor: Deferred.fromCoroutine(own(reactor)))
