"""Run what a project wants done in a new sandbox of its agent, as far as a person agreed to it."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Late

from ironcurtain.container.devcontainer import LifecycleCommand
from ironcurtain.container.project_commands import CommandsProposal
from ironcurtain.container_agent.agent_sandbox import AgentSandbox
from ironcurtain.container_agent.output import ERRORS_LIMIT, Lines, Tail, tail
from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.session import events
from ironcurtain.session.parts import Core
from ironcurtain.text.display import one_line

SHOWN = 200
"""Maximum length in characters of a command in a notice; the person saw it whole before."""


class ProjectSetup:
    """
    Runs the commands before the agent's program in each sandbox: those for a new container once a session, the others
    in each sandbox. After one that fails, no further one is run, and the session goes on.

    :param find: returns what the project wants to be run, as its file is now.
    """

    def __init__(self, core: Core, find: Callable[[], CommandsProposal | None]) -> None:
        self._core, self._find = core, find
        self._done_in: AgentSandbox | None = None

    async def run(self, sandbox: AgentSandbox) -> None:
        """
        Run what was not run in this sandbox. If that is cancelled, the next message begins again.

        :raises ContainerDied: the sandbox ended meanwhile.
        """
        if sandbox is self._done_in:
            return
        try:
            proposal = self._find()
        except ConfigurationError as e:
            self._say(f"no commands of the project are run: {e}")
            proposal = None
        if proposal is not None and (refusal := proposal.refusal):
            self._say(refusal, routine=proposal.known is False)
        elif proposal is not None:
            await self._run_all(sandbox, proposal)
        self._done_in = sandbox

    async def _run_all(self, sandbox: AgentSandbox, proposal: CommandsProposal) -> None:
        file = self._core.paths.project_commands
        is_new = not file.exists() or file.read_text() != proposal.digest
        for command in proposal.commands:
            if (is_new or not command.is_once) and not await self._succeeds(sandbox, command):
                return
        if is_new:
            write_atomically(file, proposal.digest.encode())

    async def _succeeds(self, sandbox: AgentSandbox, command: LifecycleCommand) -> bool:
        title = one_line(command.title, SHOWN)
        self._say(f"{title} of the project is run: {one_line(command.text, SHOWN)}", routine=True)
        seconds = self._core.services.clock.seconds
        lines, kept = Lines(lambda line: self._core.log_line(title, line), seconds), Tail(ERRORS_LIMIT)

        def sink(data: bytes) -> None:
            lines.feed(data)
            kept.feed(data)

        argv = command.argv_in(self._core.directory)
        self._core.audit.append("project-command", member=command.title, command=list(argv))
        began, status, limit = seconds(), -1, self._core.services.settings.agents.turn_seconds
        how = f"was ended after {limit:g} s (agents.turn_seconds)"
        try:
            running = sandbox.run(argv, stdin=b"", stdout=sink, stderr=sink, environment={})
            ended = await Deferred.fromCoroutine(running).addTimeout(limit, self._core.services.clock)
            status, how = ended.status, f"failed with status {ended.status}"
        except Late:
            pass  # all that it started is ended
        finally:
            lines.end()
            took = round((seconds() - began) * 1000, 1)
            self._core.audit.append("project-command-end", status=status, durationMs=took)
        if status:
            said = f": {tail(kept.kept)}" if kept.kept.strip() else ""
            self._say(f"{title} of the project {how}, and no further one is run{said}")
        return not status

    def _say(self, text: str, *, routine: bool = False) -> None:
        self._core.emit(events.Notice(text=self._core.services.redactor.live(text), routine=routine))
