"""Assemble sessions with an agent in a container."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.accounts.keys import open_key
from ironcurtain.accounts.opening import AccountSurroundings, open_account
from ironcurtain.accounts.renewing import RenewalRequest
from ironcurtain.accounts.source import TokenSource
from ironcurtain.agents.adapter import Adapter, Facts
from ironcurtain.agents.orientation import Reach, orientation
from ironcurtain.audit.chain import read_record
from ironcurtain.container.container import Container
from ironcurtain.container.devcontainer import in_directory
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import ContainerDied
from ironcurtain.container.image_choices import find_choices
from ironcurtain.container.image_plans import Basis
from ironcurtain.container.own_path import agent_directory, obstacle
from ironcurtain.container.project_choices import ProjectChoices
from ironcurtain.container.project_commands import CommandsProposal, ProjectCommands
from ironcurtain.container.proxy_listener import ProxyListener
from ironcurtain.container.screened import ScreenedContainer
from ironcurtain.container.sidecar import Sidecar, SocketWay
from ironcurtain.container.spec import WORKSPACE, ContainerSpec, Mount
from ironcurtain.container.terminal import ContainerTerminal, waiting
from ironcurtain.container_agent.agent import ContainerAgent, Making
from ironcurtain.container_agent.bubblewrapped.description import mcp_command
from ironcurtain.container_agent.bubblewrapped.sandbox import BubblewrapSandbox, Plan
from ironcurtain.container_agent.bubblewrapped.screened import ScreenedBubblewrap
from ironcurtain.container_agent.bubblewrapped.versions import version
from ironcurtain.container_agent.conversation import cut_off
from ironcurtain.container_agent.github import github_accounts, github_variables
from ironcurtain.container_agent.leftovers import clear
from ironcurtain.container_agent.paying import Paying
from ironcurtain.container_agent.places import BUBBLEWRAP, CONTAINER, NAMES, SANDBOX, Places, check_account
from ironcurtain.container_agent.provision import (
    BUNDLE_NAME,
    COMMAND,
    describe,
)
from ironcurtain.container_agent.proxies import Proxies, Spent, Traffic, known_prices, spent_before
from ironcurtain.container_agent.screen import OnEnd, ScreenAgent, ScreenMaking
from ironcurtain.container_agent.surroundings import Surroundings, workspace_names
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.sections import Provider
from ironcurtain.http.host_patterns import HostPatterns
from ironcurtain.mcp_proxy.proxy import McpProxy
from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.mitm_proxy.proxy import MitmProxy, MitmSurroundings
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.responder import Responder
from ironcurtain.process.configured_secret import configured_secret
from ironcurtain.process.identity import identify
from ironcurtain.registries.opening import OpenRegistries, RegistrySurroundings
from ironcurtain.registries.recording import PackageTraffic
from ironcurtain.secrets.redaction import Secret
from ironcurtain.services.background import in_background
from ironcurtain.session import events
from ironcurtain.session.history import read_turns
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Core, Services
from ironcurtain.session.tools import make_proxy, session_protected, wait_for_servers
from ironcurtain.terminal.screen import Screens

SYSTEM_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
"""Where programs in the image look for certificates if they read no variable, such as wget and apt."""

AGENT = "the agent"
"""Who wants an agent's connections, in questions and records."""


class Images(Protocol):
    """The images of agents."""

    def choose(self, workspace: str, settings: ContainerSettings) -> Basis:
        """:returns: what the images for a workspace stand on, by its real path; empty: it is the session's own."""

    async def ensure(self, agent: str, progress: Callable[[str], None], basis: Basis) -> str:
        """:returns: a reference to an agent's image, which is built if necessary."""


def _project(core: Core) -> str:
    """:returns: the real path of the person's project; empty: only the agent wrote to the workspace."""
    persons = core.request.workspace is not None or "repo" in core.request.options
    return str(core.workspace.resolve()) if persons else ""


class ContainerKind:
    """
    Creates the parts of a session with one agent.

    :param engine: finds the Docker Engine.
    :param images: finds the agents' images.
    :param environ: the environment of this process, for keys.
    :param screens: screen models of agents in terminals; shared by all kinds.
    :ivar paying: who pays.
    """

    def __init__(
        self,
        adapter: Adapter,
        engine: Callable[[], Engine],
        images: Callable[[], Images],
        services: Services,
        reactor: Any,
        environ: Mapping[str, str],
        screens: Screens,
    ) -> None:
        self._adapter, self._engine, self._images = adapter, engine, images
        self._given = Surroundings(adapter, environ)
        self._services, self._reactor, self._environ, self._screens = services, reactor, environ, screens
        self._way = SocketWay(services.settings.agents.sockets)
        self._places = Places(adapter, services.settings, environ)
        self.paying = Paying(adapter, services, environ)

    @property
    def no_terminal(self) -> str:
        """Why the agent cannot show a screen of its own; empty: it can."""
        return "" if self._adapter.supports_pty else f"{self._adapter.display_name} has no interactive interface"

    def directory(self, workspace: Path | None) -> str:
        """:returns: where agents of new sessions work; ``None`` is a workspace of the session's own."""
        return WORKSPACE if workspace is None else agent_directory(str(workspace.resolve()))

    async def check(self, request: SessionRequest) -> SessionRequest:
        """
        Check all requirements of a session, and choose the sandbox of its agent.

        :returns: the request, with the sandbox among its options.
        :raises EngineUnavailable: there is no Docker Engine.
        :raises Unavailable: no sandbox can be had.
        :raises ConfigurationError: nobody pays for the agent's model, or it is unclear who does; or there is no account
            for the container.
        :raises UsageError: the account cannot write to the workspace.
        """
        account = self._services.choose_account(request.workspace)
        asked, workspace = str(request.options.get(SANDBOX) or ""), request.workspace
        own = "" if workspace is None else str(workspace.resolve())
        chosen = await self._places.choose(asked, self._engine, account, own)
        check_account(account, request)
        self.paying.rules(self.paying.payers(request))
        return replace(request, options={**request.options, SANDBOX: chosen})

    def make_tools(self, core: Core) -> Proxies:
        """:returns: both proxies, not started."""
        if core.request.workspace and (hidden := obstacle(str(core.workspace.resolve()))) not in ("", WORKSPACE):
            words = f"the agent finds the workspace at {WORKSPACE} only: its own path collides with {hidden} there"
            core.emit(events.Notice(text=words, routine=True))
        mcp = make_proxy(core, self._reactor, self._environ)
        run = core.services.home.session_run(core.id)
        authority = Authority.load_or_make(self._services.home.authority, self._services.now)
        make_mitm = partial(self._mitm, core, authority, mcp)
        make_registries = partial(self._registries, core, mcp)
        return Proxies(core, mcp, make_mitm, make_registries, self._spent(core), run, authority.certificate_pem)

    def make_agent(self, core: Core, proxies: Proxies) -> ContainerAgent | ScreenAgent:
        """:returns: the agent, not started."""
        fakes = proxies.mitm.fakes
        keys = {name: fake.secret.reveal() for name, fake in fakes.items()}
        accounts = {name: fake.account.reveal() for name, fake in fakes.items() if fake.account is not None}
        places = {rule.name: rule.places for rule in proxies.mitm.rules}
        options, timeout = core.request.options, core.services.settings.escalation.timeout_seconds
        conversation = core.paths.agent_conversation
        known = conversation.read_text("utf-8", "replace") if core.resumed and conversation.exists() else ""
        model = str(options.get("model") or "")
        facts = Facts(keys, model, "", timeout, core.resumed, accounts, places, known, core.directory)
        in_bubblewrap = options.get(SANDBOX) == BUBBLEWRAP
        if in_bubblewrap:
            found = self._places.program(str(core.workspace.resolve()))
            facts = replace(facts, mcp_command=mcp_command(), version=version(found) if found else "")
        text = f"the agent runs in {NAMES[str(options.get(SANDBOX) or CONTAINER)]}"
        core.emit(events.Notice(text=text, routine=True))
        turns = read_turns(core.paths.history) if core.resumed else []
        answered = any(not turn.error for turn in turns)
        place, orient = partial(self._given.place, core), partial(self._orientation, core, proxies)
        if (size := core.request.terminal) is not None:
            with suppress(ConfigurationError):  # it is of no use here
                if self._commands(core) is not None:
                    core.emit(
                        events.Notice(text="with --pty, no command of devcontainer.json is run: run them yourself")
                    )
            screened = partial(self._in_bubblewrap_terminal if in_bubblewrap else self._screened, core, proxies)
            screening = ScreenMaking(screened, place, orient, self._screens.open)
            first = not answered and not (core.resumed and proxies.spent.steps)
            return ScreenAgent(core, proxies, self._adapter, facts, screening, size, first)
        sandboxed = partial(self._in_bubblewrap if in_bubblewrap else self._container, core, proxies)
        making = Making(sandboxed, place, orient, partial(self._commands, core))
        notice = cut_off(turns)
        return ContainerAgent(core, proxies, self._adapter, facts, making, proxies.traffic, answered, notice)

    def _mitm(
        self,
        core: Core,
        authority: Authority,
        mcp: McpProxy,
        traffic: Traffic,
        responders: Mapping[tuple[str, int], Responder],
        down: Callable[[str], None],
    ) -> MitmProxy:
        payers = {payer.provider: payer for payer in self.paying.payers(core.request)}
        core.payers[:] = [payer.words for payer in payers.values()]
        if payers:
            core.emit(events.Notice(text=f"paid by {'; '.join(core.payers)}", routine=True))

        async def post(request: RenewalRequest) -> tuple[int, bytes]:
            from ironcurtain.accounts.token_endpoint import verified_endpoint  # slow to import, and rarely needed

            return await verified_endpoint(self._reactor, core.services.proxies).post(request)

        around = AccountSurroundings(self._reactor, post, core.services.now, self._services.redactor)

        github = core.services.settings.github

        async def token() -> Secret:
            return await configured_secret(github.token, "github.token", self._environ, self._reactor)

        async def account(name: str) -> TokenSource:
            if (place := payers[name].place) is not None:
                return await open_account(self.paying.accounts, place, around)
            source = core.services.settings.providers.get(name, Provider()).key
            return await open_key(name, source, self._environ, self._reactor)

        return MitmProxy(
            session_id=core.id,
            rules=self.paying.rules(payers.values()),
            account=account,
            authority=authority,
            audit=core.audit,
            redactor=core.services.redactor,
            surroundings=MitmSurroundings(
                self._reactor,
                self._reactor.nameResolver,
                os.urandom,
                lambda: uuid.uuid4().hex,
                core.services.proxies,
            ),
            events=self.paying.noting_limits(payers, traffic.heard),
            exhausted=lambda: mcp.guard.look() or traffic.refusal(),
            down=down,
            judge=mcp.network_judge(AGENT),
            undecrypted=HostPatterns(core.services.settings.network.undecrypted),
            responders=responders,
            accounts=github_accounts(github, os.urandom, token),
        )

    def _registries(self, core: Core, mcp: McpProxy, heard: Callable[[PackageTraffic], None]) -> OpenRegistries:
        around = RegistrySurroundings(
            self._reactor,
            Dialer(self._reactor, self._reactor.nameResolver, core.services.proxies),
            core.audit,
            core.services.redactor,
            lambda where, key: configured_secret(key, where, self._environ, self._reactor),
            lambda: datetime.fromtimestamp(core.services.now(), UTC),
            heard,
        )
        judge = partial(mcp.network_judge, AGENT, None)
        return OpenRegistries(core.services.settings.registries, around, judge)

    def _spent(self, core: Core) -> Spent:
        if not core.resumed:
            return Spent()
        with core.paths.audit.open("rb") as lines:
            records = [record for line in lines if (record := read_record(line.removesuffix(b"\n"))) is not None]
        return spent_before(records, known_prices(core.services.settings))

    async def _container(self, core: Core, proxies: Proxies, died: Callable[[ContainerDied], None]) -> Container:
        spec = await self._spec(core, proxies, COMMAND, {}, tty=False)
        return Container(self._engine(), spec, died, *self._ways(core, proxies))

    async def _screened(
        self, core: Core, proxies: Proxies, argv: tuple[str, ...], environment: Mapping[str, str], ended: OnEnd
    ) -> ScreenedContainer:
        terminal = ContainerTerminal(self._engine(), *(core.request.terminal or (0, 0)))
        spec = await self._spec(core, proxies, waiting(argv), environment)
        return ScreenedContainer(self._engine(), spec, terminal, ended, *self._ways(core, proxies))

    async def _in_bubblewrap(
        self, core: Core, proxies: Proxies, died: Callable[[ContainerDied], None]
    ) -> BubblewrapSandbox:
        return BubblewrapSandbox(self._reactor, self._plan(core, proxies), proxies.mitm.accept, died)

    async def _in_bubblewrap_terminal(
        self, core: Core, proxies: Proxies, argv: tuple[str, ...], environment: Mapping[str, str], ended: OnEnd
    ) -> ScreenedBubblewrap:
        sandbox = await self._in_bubblewrap(core, proxies, lambda why: None)
        return ScreenedBubblewrap(self._reactor, sandbox, argv, environment, core.request.terminal or (0, 0), ended)

    def _plan(self, core: Core, proxies: Proxies) -> Plan:
        environment, further = self._given.make(core, proxies.authority)
        environment |= github_variables(proxies.mitm.accounts)
        protected = session_protected(core, self._environ)
        names, socket, later = workspace_names(core), proxies.run.proxy_socket, partial(in_background, self._reactor)
        return self._places.plan(core, environment, names, further, socket, protected, later)

    def _ways(self, core: Core, proxies: Proxies) -> tuple[Sidecar, ProxyListener]:
        """:returns: how its container can reach the proxies, besides the mounted sockets."""

        def tell(text: str) -> None:
            core.emit(events.Notice(text=text, routine=True))

        engine = self._engine()
        listener = ProxyListener(engine, self._way, proxies.mitm.accept)
        return Sidecar(engine, self._way, proxies.open_ports, tell), listener

    async def _spec(
        self, core: Core, proxies: Proxies, command: tuple[str, ...], environment: Mapping[str, str], tty: bool = True
    ) -> ContainerSpec:
        engine = self._engine()
        clearing = Deferred.fromCoroutine(self._clear(core, engine))
        if core.request.resume:
            await clearing  # a container that a crash left has the same name
        basis = self._images().choose(_project(core), core.services.settings.container)
        for sentence in basis.words:
            core.emit(events.Notice(text=sentence))
        image, processors = await self._image_and_processors(core, engine, basis)
        around, further = self._given.make(core, proxies.authority)
        own = {name: in_directory(value, core.directory) for name, value in basis.environment.items()}
        return describe(
            session_id=core.id,
            image=image,
            command=command,
            tty=tty,
            account=core.account,
            environment={**own, **around, **github_variables(proxies.mitm.accounts), **environment},
            workspace=core.workspace.resolve(),
            places=workspace_names(core),
            further=(*further, Mount(str(core.paths.orientation / BUNDLE_NAME), SYSTEM_BUNDLE)),
            paths=core.paths,
            run=proxies.run,
            resources=core.services.settings.resources,
            processors=processors,
            home=core.services.home.path,
            owner=identify(),
        )

    def _commands(self, core: Core) -> CommandsProposal | None:
        if not (project := _project(core)):
            return None
        home, settings = core.services.home, core.services.settings.container
        choices = ProjectChoices(home, settings, find_choices(self._environ, settings), self._environ)
        return ProjectCommands(home, choices).propose(project)

    async def _image_and_processors(self, core: Core, engine: Engine, basis: Basis) -> tuple[str, float]:
        asking = Deferred.fromCoroutine(engine.processors())
        try:
            image = await self._images().ensure(
                self._adapter.image, lambda line: core.emit(events.Progress(text=line)), basis
            )
        except BaseException:
            asking.addErrback(lambda _: None)  # nobody waits for it any longer
            asking.cancel()
            raise
        return image, await asking

    async def _clear(self, core: Core, engine: Engine) -> None:
        for sentence in await clear(engine, core.services.home):
            core.emit(events.Progress(text=sentence))

    async def _orientation(self, core: Core, proxies: Proxies) -> str:
        gate = proxies.mcp.gate
        await wait_for_servers(proxies.mcp, core.request, core.emit)
        reach = Reach([rule.host for rule in proxies.mitm.rules], proxies.registry_hosts, proxies.mcp.open_hosts)
        names = [tool.public_name for tool in gate.tools()]
        seconds = core.services.settings.escalation.timeout_seconds
        text = orientation(names, reach, seconds, core.directory, self._given.git_advice(core))
        return text + self._given.instructions(core)
