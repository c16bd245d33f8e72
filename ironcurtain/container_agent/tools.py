"""The two ways out of a container: the MCP proxy for tools and the MITM proxy for models, each behind a socket."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.container_agent.traffic import Spent, Traffic
from ironcurtain.errors import SessionError
from ironcurtain.home.layout import RunPaths, account_directory, private_directory
from ironcurtain.mcp_proxy.proxy import McpProxy
from ironcurtain.mitm_proxy.proxy import MitmProxy
from ironcurtain.session import events
from ironcurtain.session.parts import Core

MakeMitm = Callable[[Traffic, Callable[[str], None]], MitmProxy]

LOOK_SECONDS = 0.5
"""How often the MCP proxy's socket is looked at: half of what may pass until a dead proxy is told."""


class Proxies:
    """
    Both proxies of a session.

    :param mcp: made, and not started.
    :param make_mitm: makes the other one; gets whom to tell of requests and answers, and whom if it dies.
    :param spent: what the session used before it was resumed.
    :param run: where the sockets go.
    :param authority: the certificate that the agent has to trust, as PEM.
    """

    log = Logger()

    def __init__(
        self, core: Core, mcp: McpProxy, make_mitm: MakeMitm, spent: Spent, run: RunPaths, authority: bytes
    ) -> None:
        self._core, self.run, self.authority = core, run, authority
        clock = core.services.clock
        self.spent = spent
        """What the session used before it was resumed."""
        self.traffic = Traffic(
            core.services.settings, spent, core.emit, lambda why: self.on_exhausted(why), clock.seconds, core.log_line
        )
        """What the agent used of its models."""
        self.mcp, self.mitm = mcp, make_mitm(self.traffic, lambda why: self._died("MITM", why))
        self.dead = ""
        """Why nothing passes any more; empty while both live."""
        self.on_death: Callable[[str], None] = lambda why: None
        """Is told why, once."""
        self.on_exhausted: Callable[[SessionError], None] = lambda why: None
        """Is told when the session's budget is used up."""
        self._looking = LoopingCall(self._look)
        self._looking.clock = clock

    @property
    def unsandboxed(self) -> tuple[str, ...]:
        """Names of the MCP servers that run outside any sandbox."""
        return self.mcp.unsandboxed

    @property
    def failures(self) -> dict[str, str]:
        """Why MCP servers are down, by their names."""
        return self.mcp.failures

    async def start(self) -> None:
        """Start both, and let the agent in."""
        account = self._core.account
        private_directory(self.run.directory)
        private_directory(self.run.host)
        account_directory(self.run.agent, account.uid, account.gid)
        try:
            await _both(self._start_mcp(), self._start_mitm())
        except BaseException:
            await self.stop()
            raise
        self._looking.start(LOOK_SECONDS, now=False).addErrback(
            lambda failure: self._died("MCP", f"it is not looked at any more: {failure.getErrorMessage()}")
        )

    async def stop(self) -> None:
        """Let nobody in any more, end both, and remove the sockets."""
        if self._looking.running:
            self._looking.stop()
        try:
            await _both(self.mcp.stop(), self.mitm.stop())
        finally:
            shutil.rmtree(self.run.directory, ignore_errors=True)

    async def _start_mcp(self) -> None:
        await self.mcp.start()
        await self.mcp.listen(self.run.proxy_socket, self._owner)

    async def _start_mitm(self) -> None:
        await self.mitm.start()
        await self.mitm.listen(self.run.mitm_socket, self._owner)

    @property
    def _owner(self) -> tuple[int, int] | None:
        switched = self._core.switched
        return None if switched is None else (switched.uid, switched.gid)

    def _look(self) -> None:
        if not self.mcp.alive:
            self._looking.stop()
            self._died("MCP", "its socket is gone")

    def _died(self, proxy: str, why: str) -> None:
        if self.dead:
            return
        self.dead = f"the {proxy} proxy is dead ({why}), so the agent is cut off: end this session and resume it"
        self._core.emit(events.ProxyDown(proxy=proxy, reason=why))
        self._core.audit.append("proxy-down", proxy=proxy, reason=why)
        self.on_death(self.dead)


async def _both(*work: Any) -> None:
    # Both come to their end before the first failure is raised, so that nothing is left half-way.
    try:
        await gatherResults([Deferred.fromCoroutine(each) for each in work], consumeErrors=True)
    except FirstError as e:
        e.subFailure.raiseException()
