"""The sandbox of an agent: made when it is needed, made again when it died, removed at the end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ironcurtain.container.errors import ContainerDied
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container_agent.agent_sandbox import AgentSandbox
from ironcurtain.container_agent.leftovers import removed
from ironcurtain.container_agent.places import SANDBOX
from ironcurtain.errors import IronCurtainError
from ironcurtain.session import events
from ironcurtain.session.parts import Core


def record_start(core: Core, sandbox: str, findings: Sequence[ProbeFinding]) -> None:
    """
    Record in the audit log that a sandbox passed the probe.

    :param sandbox: its id: of a container, or of the first process of a sandbox of bubblewrap.
    """
    checked = [finding.what for finding in findings]
    core.audit.append("container", containerId=sandbox, sandbox=core.request.options.get(SANDBOX), checked=checked)


class SandboxLife:
    """
    :param make: creates a sandbox without starting it; takes the function to call if it dies.
    :param on_death: called once when the current one has died.
    :ivar current: where the agent's programs run; ``None``: it is not up.
    """

    log = Logger()

    def __init__(
        self,
        core: Core,
        make: Callable[[Callable[[ContainerDied], None]], Awaitable[AgentSandbox]],
        on_death: Callable[[ContainerDied], None],
    ) -> None:
        self._core, self._make, self._on_death = core, make, on_death
        self.current: AgentSandbox | None = None
        self._dead: AgentSandbox | None = None
        self._removing: Deferred[None] | None = None

    async def open(self) -> AgentSandbox:
        """:returns: the current one, or a new one."""
        if self.current is None:
            await self._removed()
            if self._dead is not None:  # the next container has the same name
                await self._dead.stop()
                self._dead = None
            container = await self._make(self.died)
            record_start(self._core, container.id, await container.start())
            self.current = container
        return self.current

    async def roomy(self) -> AgentSandbox:
        """:returns: one in which processes can start, as :meth:`open` does."""
        if self.current is not None and await self.current.crowded():
            await self.make_room(self.current)
        return await self.open()

    async def make_room(self, container: AgentSandbox) -> None:
        """No further process can start in the container: end all that this or earlier messages left running."""
        text = f"{limit_words(container)} is reached: ending everything that the agent left running"
        self._core.emit(events.Notice(text=text))
        if not await container.end_programs():
            self.died(ContainerDied(f"the container was ended, since {limit_words(container)} was reached"))

    async def stop(self) -> None:
        """End and remove it."""
        await self._removed()
        if (container := self.current or self._dead) is not None:
            self.current = self._dead = None
            await removed(container, self._core)

    def died(self, why: ContainerDied) -> None:
        """It is gone."""
        if self.current is None:  # both the run of the program and the watch notice it
            return
        dead, self.current = self.current, None
        self._dead = dead
        self._core.emit(events.ContainerEnded(reason=str(why)))
        self._core.audit.append("container-end", reason=str(why))
        self._on_death(why)
        self._removing = Deferred.fromCoroutine(self._remove(dead))

    async def _remove(self, container: AgentSandbox) -> None:
        try:
            await container.stop()
            self._dead = None
        except IronCurtainError as e:  # removing is retried before the next container is created
            self.log.warn("a dead container could not be removed yet: {error}", error=e)

    async def _removed(self) -> None:
        """Wait until the previous container is removed, or cannot be removed now."""
        if self._removing is not None:
            await self._removing
            self._removing = None


def limit_words(container: AgentSandbox) -> str:
    """:returns: how many processes there may be."""
    return f"the limit of {container.most_processes} processes and threads (resources.pids)"
