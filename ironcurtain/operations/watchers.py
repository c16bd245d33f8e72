"""Follow the watchers of a home in this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ironcurtain.home.layout import Home
from ironcurtain.home.settings import BUILT_IN_AGENT
from ironcurtain.watchers.config import load_watchers
from ironcurtain.watchers.decision import Chains
from ironcurtain.watchers.model import SHELL, Kind, Watcher
from ironcurtain.watchers.record import Records
from ironcurtain.watchers.triggers import Triggers
from ironcurtain.watchers.watching import Run, Surroundings, Watching


def watchers_of(home: Home, environ: Mapping[str, str] = os.environ) -> tuple[Watcher, ...]:
    """
    :param environ: the environment with the person's ``HOME``.
    :returns: the watchers of a home.
    :raises ConfigurationError: ``watchers.toml`` is wrong.
    """
    return load_watchers(home.watchers, environ, _agents)


def _agents() -> list[str]:
    from ironcurtain.agents.registry import installed

    return [BUILT_IN_AGENT, *installed().names]


class Watchers:
    """
    :param reactor: the reactor.
    :param run: runs an agent for a watcher.
    :param in_shell: whether this process is a shell, which follows the watchers with the agent ``shell``; else it
        follows the others.
    :param say: called with what people should know, one sentence each.
    """

    log = Logger()

    def __init__(
        self,
        reactor: Any,
        home: Home,
        environ: Mapping[str, str],
        run: Run,
        in_shell: bool = False,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._reactor, self._home, self._environ, self._run, self._in_shell = reactor, home, environ, run, in_shell
        self._say = say or (lambda sentence: self.log.warn("{sentence}", sentence=sentence))
        self._records, self._chains = Records(home.watcher_records), Chains()
        self._followed: dict[str, Watching] = {}

    async def start(self) -> None:
        """
        Follow what ``watchers.toml`` says now; a watcher that watches and has not changed goes on.

        :raises ConfigurationError: the file is wrong; then nothing changes.
        """
        wanted = {each.name: each for each in watchers_of(self._home, self._environ) if self._is_ours(each)}
        for name, watching in list(self._followed.items()):
            if wanted.get(name) != watching.watcher or watching.failed:
                del self._followed[name]
                await watching.stop()
        for name in wanted.keys() - self._followed.keys():
            self._followed[name] = made = self._make(wanted[name])
            made.start()

    async def stop(self) -> None:
        """End the runs in progress, and follow nothing any more."""
        followed, self._followed = list(self._followed.values()), {}
        for watching in followed:
            await watching.stop()

    def _is_ours(self, watcher: Watcher) -> bool:
        return watcher.trigger is not Kind.STDIN and (watcher.agent == SHELL) is self._in_shell

    def _make(self, watcher: Watcher) -> Watching:
        triggers = Triggers(
            self._reactor,
            self._environ,
            self._home,
            self._records,
            time.time,
            lambda work: deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work),
            lambda name, sentence: self._say(f"watcher {name}: {sentence}"),
        )
        around = Surroundings(
            triggers.make, self._records, self._chains, self._reactor, time.time, self._run, self._say
        )
        return Watching(watcher, around)
