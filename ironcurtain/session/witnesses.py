"""Open the witnesses that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.audit.log import InThread
from ironcurtain.audit.witness import HTTPS, Witnesses, WriteLine, make_sinks
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Audit
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.services.line_sinks import LineSink


def open_witnesses(
    reactor: Any, home: Home, audit: Audit, proxies: UpstreamProxies, in_thread: InThread, tell: Callable[[str], None]
) -> Witnesses:
    """
    :param proxies: upstream proxies.
    :param tell: tells the user that a witness cannot be reached.
    :returns: all witnesses that the settings name.
    :raises ConfigurationError: one is in the home, or a file for it cannot be used.
    """
    writers = {name: _blocking(sink, in_thread) for name, sink in make_sinks(home, audit.witness).items()}
    if any(place.startswith(HTTPS) for place in audit.witness):
        from ironcurtain.session.https_witness import https_witnesses  # slow to import

        writers |= {name: _started(witness.write) for name, witness in https_witnesses(reactor, audit, proxies).items()}
    return Witnesses(writers, home.unsent_heads, reactor, tell)


def _blocking(sink: LineSink, in_thread: InThread) -> WriteLine:
    return lambda line: in_thread(partial(sink.write, line))


def _started(write: Callable[[bytes], Coroutine[Any, Any, None]]) -> WriteLine:
    return lambda line: Deferred.fromCoroutine(write(line))
