"""``ironcurtain doctor``."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ironcurtain.cli.doctor_installation import daemon, interpreter
from ironcurtain.cli.doctor_keys import github, models
from ironcurtain.cli.doctor_tools import tools
from ironcurtain.cli.doctor_watchers import watchers
from ironcurtain.cli.findings import HINT, OK, WRONG, Finding
from ironcurtain.cli.output import as_json, fitted, home, print_json, print_lines, settings
from ironcurtain.errors import ConfigurationError, Unavailable, UsageError
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.container.docker_context import DockerContext
    from ironcurtain.container.errors import EngineUnavailable
    from ironcurtain.home.layout import Home
    from ironcurtain.process.accounts import Account
    from ironcurtain.sandbox.spec import Kind
    from ironcurtain.session.model import SessionInfo

PARTS_SHOWN = 6
"""Number of the largest parts of the home whose sizes are shown."""

SERVER_FAULT = "Report it to the server's authors. Its other parts are used."
"""What to do about an MCP server that breaks the protocol."""

INDENT = 7
"""Columns before what is said of a finding, for its state."""

LARGE = 5 * 10**9
"""Size in bytes of all sessions from which on removing some is suggested."""


@click.command()
@as_json
def doctor(json_output: bool) -> None:
    """
    Check this installation, and say how to fix what is wrong.

    Exits with status 1 if something is wrong; hints do not count.
    """
    where = home()
    findings = list(examine(where))
    if json_output:
        print_json(findings)
    for finding in () if json_output else together(findings):
        text = fitted(f"{'':{INDENT}}{finding.what}: {finding.detail}")
        click.echo(f"{finding.state:<{INDENT}}{text[INDENT:]}")
        if finding.mend:
            print_lines(f"{'':{INDENT}}{finding.mend}")
    if any(finding.state == WRONG for finding in findings):
        raise SystemExit(1)


def together(findings: Iterable[Finding]) -> list[Finding]:
    """:returns: findings in which those are one, where the first is, that differ in nothing but their subject."""
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        key = (finding.state, finding.detail, finding.mend)
        if (first := found.get(key)) is not None:
            topic, colon, _ = first.what.partition(": ")
            finding = msgspec.structs.replace(first, what=f"{first.what}, {finding.what.removeprefix(topic + colon)}")
        found[key] = finding
    return list(found.values())


def examine(where: Home) -> Iterator[Finding]:
    """Run all checks, in the order of their dependence."""
    from ironcurtain.session.workspace import keep_out_workspaces

    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", OK, f"{version} ({sys.executable})")
    keep_out_workspaces(where)
    reported: set[str] = set()
    checks = (
        _home,
        _files,
        _servers,
        tools,
        watchers,
        _desktop,
        _sandbox,
        interpreter,
        models,
        _accounts,
        github,
        _records,
        _sizes,
        daemon,
        _running,
    )
    for check in checks:
        try:
            for finding in check(where):
                reported.add(finding.detail)
                yield finding
        except Exception as e:
            if str(e) not in reported:  # the check of the files may have reported it
                yield Finding(check.__name__.strip("_"), WRONG, str(e), "Fix that and run this again.")


def _home(where: Home) -> Iterator[Finding]:
    if not where.path.exists():
        nearest = next(above for above in where.path.parents if above.exists())
        if os.access(nearest, os.W_OK | os.X_OK):
            yield Finding("home", HINT, f"{where.path} does not exist yet", "Make it with: ironcurtain init")
        else:
            detail = f"{where.path} cannot be made: your account may not write to {nearest}"
            yield Finding("home", WRONG, detail, "Set IRONCURTAIN_HOME to a directory of yours.")
        return
    mode = stat.S_IMODE(where.path.stat().st_mode)
    if mode & 0o077:
        yield Finding("home", WRONG, f"{where.path} is open to others", f"Close it: chmod 700 {where.path}")
        return
    try:
        where.check_writable()
    except UsageError as e:
        yield Finding(
            "home", WRONG, str(e), f"Make room on its disk, or let your account write: chmod 700 {where.path}"
        )
    else:
        yield Finding("home", OK, str(where.path))


def _files(where: Home) -> Iterator[Finding]:
    from ironcurtain.configuration import check_files

    for file in check_files(where, os.environ):
        if file.error is not None:
            yield Finding(file.path.name, WRONG, str(file.error), "Fix that, then run: ironcurtain config check")
        else:
            yield Finding(file.path.name, OK, str(file.path) if file.exists else "the defaults apply")


def _servers(where: Home) -> Iterator[Finding]:
    from ironcurtain.configuration import examine_servers
    from ironcurtain.mcp_proxy.launch import is_for_desktop, is_own, serves_files
    from ironcurtain.mcp_proxy.logins import LoginFiles
    from ironcurtain.mcp_proxy.obstacles import doubt
    from ironcurtain.mcp_proxy.servers_config import HttpServer
    from ironcurtain.sandbox import programs
    from ironcurtain.sandbox.spec import Sandbox

    account, kind = _sandboxed(where)
    for server, obstacle in examine_servers(where, os.environ, os.getcwd()):
        given = ", ".join(server.reading.variables)
        given = f", with {given} of your environment" if given else ""
        if obstacle is not None:
            mend = f"Install what is missing, or correct {where.mcp_servers}"
            yield Finding(f"MCP server {server.name}", WRONG, f"does not start: {obstacle}", mend)
        elif isinstance(server, HttpServer):
            login = LoginFiles(where.oauth).of(server.name)
            if login.path.exists() and login.read(server.url) is None:
                mend = f"Run: ironcurtain mcp login {server.name}"
                yield Finding(f"MCP server {server.name}", HINT, "the kept login is for another url", mend)
            else:
                known = ", with a login" if login.path.exists() else ""
                yield Finding(f"MCP server {server.name}", OK, f"by HTTP at {server.host}{known}{given}")
        elif server.sandbox is None:
            mend = 'Remove "sandbox": "none", unless it cannot work with it; "read" and "write" extend its sandbox.'
            text = f"{server.command}, outside any sandbox, with all rights of its account; each call is asked{given}"
            yield Finding(f"MCP server {server.name}", HINT, text, mend)
        elif not is_own(server) and programs.unavailable(account, kind) is not None:
            mend = 'Enable sandboxes, see "sandbox".'
            yield Finding(f"MCP server {server.name}", WRONG, "does not start: no sandbox can be made for it", mend)
        elif is_for_desktop(server):
            detail = f"{server.command}, outside any sandbox, as the account of its session{given}; see desktop"
            yield Finding(f"MCP server {server.name}", OK, detail)
        else:
            own = "which follows no links" if serves_files(server) else "which runs git in sandboxes"
            kept = own if is_own(server) else "in a sandbox"
            made = None if is_own(server) else programs.kind_of(Sandbox(account=account, kind=kind))
            why = doubt(server, made)
            said = f"{server.command}, {kept}{given}{'' if why is None else f'; {why}'}"
            yield Finding(f"MCP server {server.name}", OK if why is None else HINT, said)


def _desktop(where: Home) -> Iterator[Finding]:
    """Report on each sense as the server for the desktop would, though it may not be configured."""
    from ironcurtain.senses.client import SensesWorker
    from ironcurtain.servers.desktop.status import PERMISSION_MISSING, senses

    worker = SensesWorker(kind=_sandboxed(where)[1])
    for sense in senses(os.environ, worker):
        missing = sense.state == PERMISSION_MISSING
        detail = f"{sense.state}: {sense.lacks}" if sense.lacks and not missing else sense.state
        yield Finding(f"desktop: {sense.name}", HINT if missing else OK, detail, sense.lacks if missing else "")


def _sandboxed(where: Home) -> tuple[Account | None, Kind | None]:
    """:returns: the account of sandboxes and their kind, if the settings choose one and can be read."""
    from ironcurtain.process.accounts import session_account

    try:
        found = settings(where).settings
    except ConfigurationError:  # which the check of the files reports
        return session_account("", os.environ, None, os.geteuid()).switched, None
    return session_account(found.run_as, os.environ, None, os.geteuid()).switched, found.sandbox.chosen


def _sandbox(where: Home) -> Iterator[Finding]:
    from ironcurtain.sandbox import bubblewrap, cgroups, promises
    from ironcurtain.sandbox.programs import other_kind, problems
    from ironcurtain.sandbox.spec import Kind, Sandbox

    account, wanted = _sandboxed(where)
    sandbox = Sandbox(account=account, kind=wanted)
    tried = dict(problems(sandbox))
    chosen = next((kind for kind, problem in tried.items() if problem is None), None)
    reasons = "; ".join(problem for problem in tried.values() if problem is not None)
    used = "MCP servers, git, downloads and the interpreter run in such sandboxes"
    if chosen is None:
        mend = "Until one works, no MCP servers but IronCurtain's own start, nor does the built-in agent."
        if (other := other_kind(sandbox)) is not None:
            mend = f"{promises.NAMES[other]} can make them: remove sandbox.kind from {where.config.name}. {mend}"
        yield Finding("sandbox", WRONG, f"none can be made: {reasons}", mend)
        return
    weak = promises.weaknesses(chosen, account)
    program, passed_over = "", f". A stronger kind cannot be used: {reasons}" if reasons else ""
    if chosen is Kind.BUBBLEWRAP:
        trial = bubblewrap.tried(account)
        program = f" ({trial.program.path})" if trial.program is not None else ""
        passed_over = f". Passed over: {'; '.join(trial.problems)}" if trial.problems else ""
        if trial.program is not None and not trial.program.safe():
            passed_over += ". This bubblewrap follows links to the host (CVE-2026-87766; 0.12 does not)"
            passed_over += "; where it could, it runs inside another"
    limits = f"They do not {'; do not '.join(weak)}." if weak else ""
    if promises.MEMORY in promises.unlimited(chosen, account):
        limits += f" Memory needs a cgroup: {cgroups.unavailable()}."
    detail = f"{promises.NAMES[chosen]} {'work' if chosen is Kind.CONTAINER else 'works'}{program}: {used}{passed_over}"
    yield Finding("sandbox", HINT if weak else OK, detail, limits)


def _accounts(where: Home) -> Iterator[Finding]:
    from ironcurtain.cli.account_list import findings

    yield from findings(where)


def _records(where: Home) -> Iterator[Finding]:
    from ironcurtain.audit.witness import make_sinks
    from ironcurtain.session.verification import public_key

    key = public_key(where)
    yield Finding("audit logs", OK, f"signed with key {key.id}" if key else "the key is made with the first session")
    for place, sink in make_sinks(where, settings(where).settings.audit.witness).items():
        try:
            sink.check()
        except Unavailable as e:
            yield _unreachable(place, e)
        else:
            yield Finding(f"witness {place}", OK, "gets the heads of audit logs")


def _sizes(where: Home) -> Iterator[Finding]:
    from ironcurtain.files.sizes import size_of
    from ironcurtain.text.quantities import size_text

    sizes = {path.name: size_of(path) for path in sorted(where.path.glob("*"))}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:PARTS_SHOWN]
    parts = ", ".join(f"{one_line(name, 40)} {size_text(sizes[name])}" for name in largest)
    full = sizes.get(where.sessions.name, 0) >= LARGE
    mend = "Remove files of old sessions: ironcurtain cleanup --older-than 30d" if full else ""
    detail = f"{size_text(sum(sizes.values()))}{f': {parts}' if parts else ''}"
    yield Finding("disk", HINT if full else OK, detail, mend)


def _running(where: Home) -> Iterator[Finding]:
    """Query the processes of this home and the Docker Engine. Uses the reactor, which runs only once."""
    from ironcurtain.cli.doctor_agents import agent_findings
    from ironcurtain.cli.doctor_docker import docker_findings
    from ironcurtain.cli.run import run
    from ironcurtain.sandbox.container import unfit

    sessions, engine, reached = run(lambda reactor: _ask(reactor, where))
    yield from reached
    for info in sessions:
        for server, why in info.servers_down.items():
            mend = f"See its log: ironcurtain logs {info.number}"
            yield Finding(f"MCP server {server}", WRONG, f"{why} (session {info.number})", mend)
        for server, faults in info.server_faults.items():
            for fault in faults:
                yield Finding(f"MCP server {server}", HINT, f"{fault} (session {info.number})", SERVER_FAULT)
    yield from docker_findings(engine, settings(where).settings.agents.sockets, _docker_context())
    yield from agent_findings(where, _sandboxed(where)[0], isinstance(engine, Mapping) and unfit(engine) is None)


def _docker_context() -> DockerContext | ConfigurationError | None:
    from ironcurtain.container.docker_context import used_context

    try:
        return used_context(os.environ)
    except ConfigurationError as e:
        return e


async def _ask(
    reactor: Any, where: Home
) -> tuple[list[SessionInfo], Mapping[str, Any] | EngineUnavailable, list[Finding]]:
    from ironcurtain.cli.doctor_proxies import proxy_findings
    from ironcurtain.container.engine import Engine
    from ironcurtain.container.errors import EngineUnavailable
    from ironcurtain.control.reactor_owners import ReactorOwners

    sessions = await ReactorOwners(reactor, where).sessions()
    reached = [*await proxy_findings(reactor, where), *await _https_witnesses(reactor, where)]
    try:
        return sessions, await Engine.find(reactor, os.environ).info(), reached
    except EngineUnavailable as e:
        return sessions, e, reached


async def _https_witnesses(reactor: Any, where: Home) -> list[Finding]:
    from ironcurtain.audit.unsent import UnsentHeads
    from ironcurtain.http.upstream_proxies import UpstreamProxies
    from ironcurtain.session.https_witness import https_witnesses

    found, known = [], settings(where).settings
    proxies = UpstreamProxies(reactor, known.network, os.environ)
    for place, witness in https_witnesses(reactor, known.audit, proxies).items():
        lacking = len(UnsentHeads(where.unsent_heads, place).lines())
        try:
            await witness.check()
        except Unavailable as e:
            found.append(_unreachable(place, e))
        else:
            more = f"; the next session sends it those of {counted(lacking, 'session')}" if lacking else ""
            found.append(Finding(f"witness {place}", OK, f"gets the heads of audit logs{more}"))
    return found


def _unreachable(place: str, why: Unavailable) -> Finding:
    mend = "Sessions run without it. Correct audit.witness in config.toml, or what it names."
    return Finding(f"witness {place}", HINT, f"cannot be reached: {why}", mend)
