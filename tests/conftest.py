"""Every test runs on the reactor that the product runs on."""

from __future__ import annotations

from twisted.internet import asyncioreactor
from twisted.internet.error import ReactorAlreadyInstalledError

try:
    asyncioreactor.install()
except ReactorAlreadyInstalledError:
    from twisted.internet import reactor

    assert isinstance(reactor, asyncioreactor.AsyncioSelectorReactor), "run with --reactor=asyncio"
