"""Assemble the tools of a session: its policy, its MCP servers, and its MCP proxy."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.home.settings import Settings
from ironcurtain.home.user_paths import account_home, person_home, user_path
from ironcurtain.mcp_proxy.launch import Ground, account_notice, is_for_root, is_own, serves_files
from ironcurtain.mcp_proxy.logins import LoginFiles
from ironcurtain.mcp_proxy.pins import PinFiles
from ironcurtain.mcp_proxy.servers_config import CommandServer, ServerConfig
from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.loading import default_annotations
from ironcurtain.policy.pathmap import AGENT_WORKSPACE, PathMap
from ironcurtain.policy.protected import always_protected
from ironcurtain.process.accounts import Account
from ironcurtain.process.secret_command import secret_from_command
from ironcurtain.sandbox import programs, promises
from ironcurtain.sandbox.linked_repository import LinkedRepository, linked_repository
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.session import events
from ironcurtain.session.auto_approver import start_auto_approver
from ironcurtain.session.call_events import teller
from ironcurtain.session.git_identity import user_identity
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Core
from ironcurtain.session.past_calls import past_calls
from ironcurtain.session.refused_requests import RefusedRequests
from ironcurtain.session.server_events import ServerDown, ServersStarting
from ironcurtain.session.server_network import authority_for, way_out
from ironcurtain.session.tool_files import ToolFiles

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.hooks import Hooks
    from ironcurtain.mcp_proxy.network_gate import RefusedConnection
    from ironcurtain.mcp_proxy.proxy import McpProxy

SERVERS_SECONDS = 10.0
"""Seconds that an agent waits for slow MCP servers; it starts without most of those that take longer."""


def protected_paths(
    home: Home, user_home: str, files: ToolFiles, settings: Settings, workspace: Path | None = None
) -> tuple[str, ...]:
    """
    :param workspace: workspace of the session, for the policy's paths below it.
    :returns: the absolute paths that no agent of this home may touch.
    :raises ConfigurationError: the policy is wrong.
    """
    keys = (user_path(provider.key.file) for provider in settings.providers.values() if provider.key.file)
    witnesses = (place.removeprefix("file:") for place in settings.audit.witness if place.startswith("file:"))
    witness_key = (user_path(settings.audit.witness_key_file),) if settings.audit.witness_key_file else ()
    accounts = settings.accounts.values()
    logins = (user_path(path) for account in accounts for path in (account.file, account.token.file) if path)
    named_files = (str(files.servers), str(files.policy), *keys, *logins, *witnesses, *witness_key)
    chosen = always_protected(user_home, str(home.path), str(home.run), *named_files)
    # HOME can differ from the account's home directory, where ssh and others keep their keys anyway.
    account = account_home(os.geteuid())
    stores = always_protected(account, str(home.path)) if os.access(account, os.X_OK) else ()
    places = PathMap(AGENT_WORKSPACE if workspace is None else str(workspace))
    named = (places.to_host(path) for path in files.load_policy().protected)
    at_home = (f"{user_home.rstrip('/')}{path[1:]}" if path.startswith("~") else path for path in named)
    return tuple(dict.fromkeys((*chosen, *stores, *at_home)))


def session_protected(core: Core, environ: Mapping[str, str]) -> tuple[str, ...]:
    """
    :param environ: the environment of this process.
    :returns: the absolute paths that the agent of one session may not touch.
    :raises ConfigurationError: the policy is wrong.
    """
    services, user_home = core.services, person_home(environ, os.geteuid())
    files = ToolFiles.chosen(services.home, core.request.options)
    switched = core.switched
    return (
        *protected_paths(services.home, user_home, files, services.settings, core.workspace),
        *([str(core.paths.directory)] if core.request.directory is not None else []),
        *(always_protected(switched.home.rstrip("/"), str(services.home.path)) if switched is not None else ()),
    )


def session_hooks(core: Core, reactor: Any, environ: Mapping[str, str]) -> Hooks:
    """:returns: the person's hooks, for the commands and calls of one session."""
    from ironcurtain.mcp_proxy.hooks import Hooks

    services = core.services
    return Hooks(reactor, services.home.hooks, environ, services.settings.shell.hook_seconds, os.geteuid())


def server_bounds(
    servers: Sequence[ServerConfig], workspace: str, account: Account | None = None
) -> dict[str, ServerBounds]:
    """
    :param workspace: real path of the session's workspace.
    :param account: the account that servers run as, if not that of this process.
    :returns: for each server, what its sandbox has, and its account, if it is on this machine.
    """
    return {server.name: _bounds(server, workspace, account) for server in servers}


def _bounds(server: ServerConfig, workspace: str, account: Account | None) -> ServerBounds:
    if not isinstance(server, CommandServer):
        return ServerBounds()
    if is_own(server):
        account = account if account is not None and not is_for_root(workspace, account) else None
        return ServerBounds(reach=tuple(word for word in server.args if word.startswith("/")), account=account)
    if (sandbox := server.sandbox) is None:
        return ServerBounds(account=account, sandboxed=False)
    return ServerBounds(sandbox.domains, (workspace, *sandbox.read, *sandbox.write), account)


def has_servers(core: Core, environ: Mapping[str, str]) -> bool:
    """
    :returns: whether the user has configured servers other than the file server.
    :raises ConfigurationError: the list of servers is wrong.
    """
    return bool(_chosen_servers(core, environ, files_too=False))


def _chosen_servers(core: Core, environ: Mapping[str, str], files_too: bool) -> tuple[ServerConfig, ...]:
    files, workspace = ToolFiles.chosen(core.services.home, core.request.options), str(core.workspace.resolve())
    servers = files.load_servers(workspace, person_home(environ, os.geteuid()), environ)
    return tuple(server for server in servers if files_too or not serves_files(server))


def make_proxy(core: Core, reactor: Any, environ: Mapping[str, str], files_too: bool = True) -> McpProxy:
    """
    Assemble the MCP proxy of a session, without starting it.

    :param files_too: whether IronCurtain's own file server is one of its servers.
    :raises ConfigurationError: the policy or the list of servers is wrong.
    """
    from ironcurtain.mcp_proxy.gate import GateLimits
    from ironcurtain.mcp_proxy.proxy import McpProxy, McpSurroundings

    services, user_home = core.services, person_home(environ, os.geteuid())
    files = ToolFiles.chosen(services.home, core.request.options)
    paths = PathMap(str(core.workspace.resolve()), core.directory)
    servers = _chosen_servers(core, environ, files_too)
    policy, annotations = files.load_policy(), default_annotations()
    protected = session_protected(core, environ)
    engine = PolicyEngine(
        policy,
        annotations,
        paths=paths,
        home=user_home,
        protected=protected,
        servers=server_bounds(servers, paths.host, core.switched),
    )

    def tell(sentence: str) -> None:
        core.emit(events.Notice(text=sentence))  # which is logged, too

    names = [server.name for server in servers]
    kind = _told_kind(core)
    core.audit.append(
        "policy",
        version=engine.policy_version,
        servers=names,
        workspace=paths.host,
        sandbox="none" if kind is None else kind.value,
        sandboxDoesNot=() if kind is None else promises.weaknesses(kind, core.switched),
    )
    pins = PinFiles(services.home.tool_definitions, services.now)
    for server in servers:
        pins.of(server.name).read()  # report a damaged file now, not when its server fails to start
    if os.geteuid() == 0:
        as_root = kind is not None and promises.runs_as_root(kind, core.switched)
        said = account_notice(core.switched, paths.host, as_root)
        if core.account.named:
            core.log_line("session", said)
        else:
            tell(said)
    authority = authority_for(servers, core)
    around = McpSurroundings(
        reactor=reactor,
        ground=Ground(
            environ=environ,
            workspace=paths.host,
            protected=protected,
            account=core.switched,
            settings=cache(lambda: user_identity(environ, core.switched, os.path.realpath(paths.host)).settings()),
            writers=annotations.merged(policy.annotations).writers(),
            downloads=private_directory(services.home.downloads),
            kind=kind or core.sandbox_kind,
            repository=_told_repository(core, protected, kind, tell),
            authority=None if authority is None else authority.certificate_pem,
        ),
        secret_command=lambda command: secret_from_command(reactor, ("/bin/sh", "-c", command), environ, command),
        new_id=lambda: uuid.uuid4().hex,
        pins=pins,
        logins=LoginFiles(services.home.oauth),
        proxies=services.proxies,
        tell=tell,
        server_down=lambda server, why: core.emit(ServerDown(server=server, reason=why)),
        starting=lambda servers: core.emit(_starting(servers, services.now() - reactor.seconds())),
        log_line=core.log_line,
        way_out=way_out(core, authority, reactor),
    )
    if services.settings.auto_approver.enabled:
        start_auto_approver(core, engine.home, paths.host, reactor, environ)
    proxy = McpProxy(
        session_id=core.id,
        servers=servers,
        engine=engine,
        audit=core.audit,
        escalations=core.escalations,
        paths=paths,
        redactor=services.redactor,
        surroundings=around,
        events=teller(core.emit, services.redactor, paths.to_agent_text),
        history=_earlier(core, engine, annotations.merged(policy.annotations), reactor.seconds()),
        limits=GateLimits(
            repeats=services.settings.limits.repeated_calls,
            durable=services.settings.audit.durability == "every-call",
        ),
        has_snapshot=lambda: core.snapshots.ready,
        end=core.end,
        refused=_refusals(core),
        hooks=session_hooks(core, reactor, environ),
    )
    for name in proxy.unsandboxed:
        tell(f"MCP server {name} runs outside any sandbox: it may do all that its account may; each call is asked")
    return proxy


def _refusals(core: Core) -> Callable[[RefusedConnection], None]:
    """:returns: what reports the refused connections of a session."""
    reports = RefusedRequests(core.emit, core.log_line)

    def refused(connection: RefusedConnection) -> None:
        event = events.RequestRefused(
            host=connection.host, method=connection.method, path=connection.path, reason=connection.reason
        )
        reports.add(event, connection.rule)

    return refused


def _told_kind(core: Core) -> Kind | None:
    """:returns: what implements the session's sandboxes, if anything does; people are told which, and what it lacks."""
    try:
        kind = programs.kind_of(Sandbox(account=core.switched, kind=core.sandbox_kind))
    except Unavailable as e:
        core.log_line("session", str(e))
        return None
    core.emit(events.Notice(text=f"sandboxes are made with {promises.NAMES[kind]}", routine=True))
    for weakness in promises.weaknesses(kind, core.switched):
        core.emit(events.Notice(text=f"they do not {weakness}"))
    return kind


def _told_repository(
    core: Core, protected: Sequence[str], kind: Kind | None, tell: Callable[[str], None]
) -> LinkedRepository | None:
    """:returns: the workspace's git repository, if it is elsewhere; people are told of it, or why git cannot use it."""
    workspace = str(core.workspace.resolve())
    try:
        found = linked_repository(workspace, protected)
        if found is not None and found.of_submodule and found.directory not in core.held:
            found = replace(found, write=())  # another session can hold it, which ends earlier
        if found is not None and kind is not None:
            read, write = found.mounts(writable=True)
            programs.kind_of(Sandbox(read, (workspace, *write), account=core.switched, kind=kind))
    except (UsageError, Unavailable) as e:
        tell(f"git does not work on this workspace: {e}" if isinstance(e, Unavailable) else str(e))
        return None
    if found is not None:
        tell(str(found))
    return found


def _starting(servers: Mapping[str, float], ahead: float) -> ServersStarting:
    """
    :param servers: since when they start.
    :param ahead: seconds between the beginnings of both clocks.
    """
    return ServersStarting(servers={name: round(since + ahead, 3) for name, since in servers.items()})


async def wait_for_servers(
    proxy: McpProxy, request: SessionRequest, emit: Callable[[events.SessionEvent], None]
) -> None:
    """
    Wait for the MCP servers before the agent learns its tools, and tell the user which are missing.

    A session with a task waits for those that the policy names until they are ready or have failed.
    """

    def waiting(names: Sequence[str]) -> None:
        emit(events.Progress(text=f"waiting for MCP servers that the policy names: {', '.join(names)}"))

    for server, why in (await proxy.ready(SERVERS_SECONDS, bool(request.task), waiting)).items():
        emit(ServerDown(server=server, reason=why))


def _earlier(core: Core, engine: PolicyEngine, annotations: Annotations, now: float) -> CallHistory:
    """:returns: what happened before a session was resumed, if its policy depends on it."""
    if not core.resumed or not engine.remembers:
        return NO_HISTORY
    return past_calls(core.paths.audit, annotations).history.shifted(now - core.services.now())
