"""Every test runs on the reactor that the product runs on, and under CI every test runs."""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import os
import stat
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from typing import Any
from unittest import TestCase

import pytest
from _pytest.unittest import UnitTestCase
from hypothesis import HealthCheck, settings
from twisted.internet.asyncioreactor import AsyncioSelectorReactor, install
from twisted.internet.error import ReactorAlreadyInstalledError
from twisted.trial import _synctest, util
from twisted.trial.unittest import SkipTest

from ironcurtain.services.steady_clock import use_steady_clock
from tests import programs

with suppress(ReactorAlreadyInstalledError):
    install()

from twisted.internet import reactor as _reactor

assert isinstance(_reactor, AsyncioSelectorReactor), "run with pytest, or trial --reactor=asyncio"
reactor: Any = _reactor
use_steady_clock(reactor)

LOOP = asyncio.get_event_loop_policy().get_event_loop()
"""The reactor's."""

# Collecting the tests makes millions of objects that stay, and no garbage.
gc.set_threshold(50_000)

# pytest asks before each test which Twisted is installed, and to answer that takes longer than most tests.
importlib.metadata.version = cache(importlib.metadata.version)

# Before each test, trial lets every module forget which warnings it has given, and with thousands of modules that takes
# longer than most tests. Python does so by itself when it is needed, since trial changes the filters of warnings, too.
_synctest._setWarningRegistryToNone = lambda modules: None

# Trial ends a test with crash(), which prepares the next start. Called while the reactor starts, as when a process had
# already ended by then, that is used up at once, and in the next test nobody would hear that processes end.
_crash = reactor.crash
reactor.crash = lambda: reactor.callFromThread(_crash)

# A test that hangs is ended before its process is (`faulthandler_timeout`), and none for having waited for the machine.
util.DEFAULT_TIMEOUT_DURATION = 600.0

# No test measures time. Half of hypothesis's usual number of examples: where it is not CI that runs the tests, each run
# has others.
settings.register_profile(
    "untimed", parent=settings.default, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")
# For `--hypothesis-profile few`, where the same tests run with all their examples on another version of Python.
settings.register_profile("few", parent=settings.get_profile("untimed"), max_examples=15)


# Directories and files of tests that run programs, slowest first. They begin first, since several processes would
# otherwise wait at the end for whichever got one of them last.
SLOW = (
    "container_agent",
    "prove",
    "fleet",
    "loop",
    "cli",
    "test_daemon.py",
    "benchmarks",
    "container",
    "servers",
    "shell",
    "mcp_proxy",
    "sandbox",
    "desktop",
)


def pytest_xdist_auto_num_workers() -> int:
    """:returns: two processes for each processor, since most tests wait, but not all memory: each takes 400 MB."""
    return min(max(4, 2 * (os.cpu_count() or 1)), 12)


class _Case(UnitTestCase):
    """A class of tests in which no fixtures are looked for: all 150 names of each took a third of the collection."""

    def newinstance(self) -> None:
        """:returns: what is looked through for them."""


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> _Case | None:
    """:returns: how the tests of a class are collected; nothing for what is none."""
    if isinstance(obj, type) and issubclass(obj, TestCase):
        return _Case.from_parent(collector, name=name, obj=obj)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files of tests; within one, they stay as they are."""
    ranks = {name: rank for rank, name in enumerate(SLOW)}
    items.sort(key=lambda item: min((ranks[name] for name in item.path.parts if name in ranks), default=len(SLOW)))


def pytest_collection_finish() -> None:
    """Look for garbage only in what tests make: in all that was collected, it took half of the time of some tests."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Throw away what the tests of a file left, and look for garbage no more in what stays of them."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _loop_of_the_reactor() -> None:
    """``asyncio.run`` takes it away from the tests that follow in the same process."""
    asyncio.set_event_loop(LOOP)


def pytest_configure(config: pytest.Config) -> None:
    """Where tests run in several processes, all of them use one Docker Engine."""
    if getattr(config.option, "numprocesses", None) and "DOCKER_HOST" not in os.environ:
        from tests import engine

        with suppress(SkipTest):
            os.environ.update(engine.environment())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """Say at the very end what was skipped, and how to run that as well."""
    yield
    skips: dict[str, set[str]] = {}
    for skipped in terminalreporter.stats.get("skipped", []):
        skips.setdefault(skipped.longrepr[2].removeprefix("Skipped: "), set()).add(skipped.nodeid)
    for line in programs.summary(skips):
        terminalreporter.write_line(line)
    programs.report(skips)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """
    Fail a test that damages the machine, and where ``CI`` is set a skipped one.

    Tests may run as root. One that replaces ``/dev/null`` by a file makes others fail or hang much later.
    """
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longreprtext}"
    if report.when == "teardown" and not stat.S_ISCHR(os.stat("/dev/null").st_mode):
        report.outcome = "failed"
        report.longrepr = "/dev/null is no device any more: this test, or one that ran beside it, replaced it"
    return report
