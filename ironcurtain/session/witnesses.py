"""Open the witnesses that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.audit.syncing import InThread
from ironcurtain.audit.witness import HTTPS, FleetSink, Witnesses, WriteLine, make_sinks
from ironcurtain.audit.witness_lines import FLEET
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Audit
from ironcurtain.http.upstream_proxies import UpstreamProxies


def open_witnesses(
    reactor: Any, home: Home, audit: Audit, proxies: UpstreamProxies, in_thread: InThread, tell: Callable[[str], None]
) -> Witnesses:
    """
    :param proxies: upstream proxies.
    :param tell: tells the user that a witness cannot be reached.
    :returns: all witnesses that the settings name, and the fleet, if this home is a member of one.
    :raises ConfigurationError: one is in the home, or a file for it cannot be used.
    """
    writers = {name: _blocking(sink.write, in_thread) for name, sink in make_sinks(home, audit.witness).items()}
    if any(place.startswith(HTTPS) for place in audit.witness):
        from ironcurtain.session.https_witness import https_witnesses  # slow to import

        writers |= {name: _started(witness.write) for name, witness in https_witnesses(reactor, audit, proxies).items()}
    if home.fleet_credentials.exists():
        writers[FLEET] = _blocking(FleetSink(home).write, in_thread)
    return Witnesses(writers, home.unsent_heads, reactor, tell)


def _blocking(write: Callable[[bytes], None], in_thread: InThread) -> WriteLine:
    return lambda line: in_thread(partial(write, line))


def _started(write: Callable[[bytes], Coroutine[Any, Any, None]]) -> WriteLine:
    return lambda line: Deferred.fromCoroutine(write(line))
