"""Choose where a session's agent runs: in a container, or in a sandbox of bubblewrap with this machine's programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote

from ironcurtain.agents.adapter import Adapter, Facts, compiling
from ironcurtain.container.engine import Engine
from ironcurtain.container.spec import Mount, mounts
from ironcurtain.container_agent.bubblewrapped.compiled import CompiledProgram
from ironcurtain.container_agent.bubblewrapped.description import plan
from ironcurtain.container_agent.bubblewrapped.programs import AgentProgram, Needed, find, lack, needed
from ironcurtain.container_agent.bubblewrapped.sandbox import Plan
from ironcurtain.container_agent.bubblewrapped.version_managers import VersionManagers
from ironcurtain.container_agent.bubblewrapped.versions import printed_version, version
from ironcurtain.container_agent.provision import BUNDLE_NAME, container_name, group_file, passwd_file, scratch_mb
from ironcurtain.errors import ConfigurationError, Unavailable, UsageError
from ironcurtain.home.settings import Settings
from ironcurtain.home.user_paths import person_home
from ironcurtain.process.accounts import SEARCH, WRITE, Account
from ironcurtain.sandbox import bubblewrap, cgroups
from ironcurtain.sandbox.certificates import bundle
from ironcurtain.sandbox.container import unfit
from ironcurtain.sandbox.landlock import implementation as landlock
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Core

SANDBOX = "sandbox"
"""The option of a session that says where its agent runs."""

CONTAINER, BUBBLEWRAP = "container", "bubblewrap"

NAMES = {CONTAINER: "a container of the Docker Engine", BUBBLEWRAP: "a sandbox of bubblewrap"}
"""The values of that option, strongest first, and how they are called."""


HOMEBREW_HOME = "/home/linuxbrew"
"""The home of Homebrew's own account, where it installs itself on Linux for all."""

NO_WORKSPACE = "/nonexistent"
"""In place of a workspace's path, where there is none."""


def program_name(adapter: Adapter) -> str:
    """:returns: the name of an agent's program."""
    return adapter.turn(Facts({}, "", "", 0.0, False), True)[0]


class Places:
    """
    :param environ: the environment of this process.
    """

    def __init__(self, adapter: Adapter, settings: Settings, environ: Mapping[str, str]) -> None:
        self._adapter, self._settings, self._environ = adapter, settings, environ

    async def choose(self, asked: str, engine: Callable[[], Engine], account: Account, workspace: str) -> str:
        """
        :param asked: what the user chose; empty: what the settings say, else the strongest that works.
        :param workspace: real path of the workspace; empty for one that is to be the session's own.
        :returns: a value of :data:`NAMES`.
        :raises UsageError: there is no such sandbox.
        :raises EngineUnavailable: it has to be a container, and no Docker Engine answers.
        :raises Unavailable: none can be had, or it has to be a container, and those of the Docker Engine are not fit.
        """
        wanted = asked or self._settings.agents.sandbox
        if wanted and wanted not in NAMES:
            raise UsageError(f"agents run in no sandbox {wanted!r}: choose container or bubblewrap")
        without = ""
        if wanted != BUBBLEWRAP:
            try:
                await _check(engine())
                return CONTAINER
            except Unavailable as e:
                if wanted:
                    raise
                without = f"{e}; and without Docker, "
        if problem := self.problem(account, workspace):
            raise Unavailable(f"{without}{problem}")
        return BUBBLEWRAP

    def problem(self, account: Account, workspace: str) -> str:
        """:returns: why the agent cannot run with bubblewrap here, in words; empty if it can."""
        if (reason := bubblewrap.available(account.switched)) is not None:
            refusal = f"{self._adapter.display_name} cannot run in a sandbox of bubblewrap: {reason}"
            return ". ".join(filter(None, (refusal, landlock_only(account.switched))))
        program = self.program(workspace)
        return self._missing() if program is None else self.lack(program, workspace)

    def program(self, workspace: str = "") -> AgentProgram | None:
        """
        :param workspace: real path of the workspace; empty: there is none.
        :returns: the agent's program on this machine; ``None`` if it has none.
        """
        return self._find(program_name(self._adapter), self._search, workspace)

    def plan(
        self,
        core: Core,
        environment: Mapping[str, str],
        places: Sequence[str],
        further: Sequence[Mount],
        proxy_socket: Path,
        protected: Sequence[str],
        later: Callable[[Callable[[], None]], object],
    ) -> Plan:
        """
        :param environment: of all programs inside.
        :param places: the paths of the workspace inside; programs start in the first one.
        :param further: further mounts, such as for the workspace's git repository.
        :param proxy_socket: the MCP proxy's socket.
        :param protected: absolute paths that must not be readable inside.
        :param later: called with work that blocks, and that makes later sessions start faster.
        :raises Unavailable: the agent's program is gone, or in the workspace.
        :raises UsageError: the agent's program is where the sandbox has something else.
        """
        workspace, paths = str(core.workspace.resolve()), core.paths
        if (program := self.program(workspace)) is None:
            raise Unavailable(self._missing())
        usual = mounts(
            workspace=workspace,
            places=places,
            home=str(paths.agent_home),
            sockets="",
            orientation=str(paths.orientation),
            passwd=str(passwd_file(paths)),
            group=str(group_file(paths)),
        )
        certificates = Mount(str(paths.orientation / BUNDLE_NAME), bundle(b"")[0])
        needed = self._needed(program, protected, workspace)
        if (how := compiling(self._adapter)) is not None:
            top = core.services.home.compiled_programs / f"{self._adapter.id}-{core.account.uid}"
            compiled = CompiledProgram(top, how, program, self._node(program, workspace), core.switched)
            needed = compiled.read_by(needed)
            if not compiled.is_kept:
                later(partial(compiled.keep, needed))
        return plan(
            name=container_name(core.id),
            account=core.account,
            environment=environment,
            needed=needed,
            mounts=(*(mount for mount in usual if mount.source), *further, certificates),
            proxy_socket=proxy_socket,
            resources=core.services.settings.resources,
            temporary_mb=scratch_mb(core.services.settings.resources),
            directory=places[0],
        )

    def lack(self, program: AgentProgram, workspace: str = "") -> str:
        """:returns: what the agent's program needs and this machine has not, as a sentence; empty if it has all."""
        return lack(program, self._node(program, workspace))

    def version(self, program: AgentProgram, account: Account | None) -> str:
        """
        :param account: the account that sandboxed programs run as; ``None``: that of this process.
        :returns: the version of the agent's program; empty if it cannot be found out.
        """
        return version(program) or printed_version(self._needed(program, (), NO_WORKSPACE), account)

    def _needed(self, program: AgentProgram, protected: Sequence[str], workspace: str) -> Needed:
        node = self._node(program, workspace)
        return needed(program, node, self._search, self._homes, protected, workspace)

    def _node(self, program: AgentProgram, workspace: str) -> AgentProgram | None:
        """:returns: Node.js, best the one beside the program: that of the same installation or version manager."""
        return self._find("node", f"{program.directory}:{self._search}", workspace)

    def _find(self, name: str, search: str, workspace: str) -> AgentProgram | None:
        return find(name, search, self._homes, VersionManagers(search, self._homes, workspace))

    @property
    def _search(self) -> str:
        return self._environ.get("PATH", os.defpath)

    @property
    def _homes(self) -> tuple[str, ...]:
        return (person_home(self._environ, os.geteuid()).rstrip("/") or "/", HOMEBREW_HOME)

    def _missing(self) -> str:
        return (
            f"{self._adapter.display_name} is not installed on this machine: there is no program "
            f"{program_name(self._adapter)!r} in your PATH, nor where its installers put it"
        )


async def _check(engine: Engine) -> None:
    """
    :raises EngineUnavailable: no Docker Engine answers.
    :raises Unavailable: no agent could work in its containers, or nothing would limit it there.
    """
    if (problem := unfit(await engine.info())) is not None:
        raise Unavailable(f"{problem} ({engine.address}); to find out more: ironcurtain doctor")


def weakness() -> str:
    """:returns: what sandboxes of bubblewrap do not hold here that containers do, in words."""
    without = cgroups.unavailable()
    memory = "" if without is None else f"their memory is not limited ({without}), and "
    return f"{memory}they have no limit of processor time"


def landlock_only(account: Account | None) -> str:
    """
    :param account: the account that sandboxed programs run as; ``None``: that of this process.
    :returns: what is possible where bubblewrap does not work and Landlock does, in words; empty if that does not, too.
    """
    if landlock.unavailable(account) is not None:
        return ""
    return (
        "Landlock works here, but cannot hold the network of an agent program, which needs bubblewrap or Docker; "
        "IronCurtain's own agent runs with it: ironcurtain start --agent builtin"
    )


def check_account(account: Account, request: SessionRequest) -> None:
    """
    :raises ConfigurationError: the account is root.
    :raises UsageError: it cannot write to the workspace.
    """
    if account.is_root:
        raise ConfigurationError(
            "config.toml", "agents in containers never run as root: choose another account", field="run_as"
        )
    workspace = request.workspace
    if workspace is not None and not account.may(WRITE | SEARCH, workspace.stat()):
        raise UsageError(
            f"the agent runs as {account}, which cannot write to {workspace}: give it the directory (chown -R "
            f"{account.uid}:{account.gid} {quote(str(workspace))}), or name its owner as run_as in config.toml"
        )
