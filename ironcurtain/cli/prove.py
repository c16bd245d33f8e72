"""``ironcurtain prove``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import agents
from ironcurtain.cli.output import as_json, home, print_json, print_lines, settings

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.servers_config import CommandServer
    from ironcurtain.process.accounts import Account
    from ironcurtain.prove.report import Report
    from ironcurtain.sandbox.spec import Kind

OWN = "is IronCurtain's own server: it runs outside a sandbox, and does not follow links"
"""Why a server is not tested."""


@click.command()
@click.option(
    "--agent",
    shell_complete=agents,
    help="Test the container of this agent, one of 'ironcurtain start --list-agents'.",
)
@click.option("--server", "names", multiple=True, help="Test the sandbox of this MCP server; may be repeated.")
@as_json
def prove(agent: str | None, names: tuple[str, ...], json_output: bool) -> None:
    """
    Test the sandboxes with a hostile program, which tries to break out of them.

    Without options: the built-in agent's interpreter, its process, and the sandbox of every MCP server in
    mcp-servers.json that has one, in each kind of sandbox that works on this machine. The program tries some hundred
    ways to read, write, reach or end what is outside, by files, links, git, sockets, other processes, system calls,
    devices and limits. Its targets are created for the test: a file with a secret, servers on this machine, and a
    process; whether an attempt had an effect is also checked from outside.

    Exit status: 0 each attempt failed, 1 one succeeded, 69 a test could not run.
    """
    reports = list(_of_agent(agent)) if agent else []
    if names or not agent:
        reports += [report for server in _servers(names) for report in _of_server(server)]
    if not (agent or names):
        reports = [*_of_builtin(), *reports]
    if json_output:
        print_json([{**asdict(report), "attempts": report.attempts, "held": report.held} for report in reports])
    else:
        for report in reports:
            click.echo("\n".join(report.lines()))
        for line in () if agent or names else _left_out():
            print_lines(line)
        out = sum(not report.held for report in reports)
        click.echo(f"{len(reports)} places were tested; " + (f"{out} did not hold." if out else "all held."))
    if not all(report.held for report in reports):
        raise SystemExit(1)


@contextmanager
def _ground() -> Iterator[tuple[Path, Account, str]]:
    """:returns: a new workspace, the account of its session, and the user's home directory."""
    from ironcurtain.home.layout import person_home
    from ironcurtain.process.accounts import session_account

    account = session_account(settings(home()).settings.run_as, os.environ, None, os.geteuid())
    with tempfile.TemporaryDirectory(prefix="ironcurtain-workspace-") as name:
        workspace = Path(name).resolve()
        with suppress(PermissionError):  # root in a container may not even change owners, nor run as somebody else
            os.chown(workspace, account.uid, account.gid)
        yield workspace, account, person_home(os.environ, os.geteuid())


def _kinds(account: Account | None) -> list[Kind]:
    """
    :param account: the account that programs will run as; ``None``: that of this process.
    :returns: the kind that the settings choose, else all that work here, strongest first.
    :raises Unavailable: none works.
    """
    from ironcurtain.errors import Unavailable
    from ironcurtain.sandbox.programs import problems
    from ironcurtain.sandbox.spec import Sandbox

    tried = dict(problems(Sandbox(account=account, kind=settings(home()).settings.sandbox.chosen)))
    if working := [kind for kind, problem in tried.items() if problem is None]:
        return working
    raise Unavailable(f"no sandbox can be made here: {'; '.join(filter(None, tried.values()))}")


def _configured() -> dict[str, CommandServer]:
    """:returns: the servers that run on this machine, by name."""
    from ironcurtain.home.layout import person_home
    from ironcurtain.mcp_proxy.servers_config import CommandServer
    from ironcurtain.session.tools import ToolFiles

    where = home()
    every = ToolFiles.chosen(where, {}).load_servers(str(where.path), person_home(os.environ, os.geteuid()), os.environ)
    return {server.name: server for server in every if isinstance(server, CommandServer)}


def _servers(names: tuple[str, ...]) -> list[CommandServer]:
    from ironcurtain.errors import NotFound
    from ironcurtain.mcp_proxy.launch import is_own

    servers = _configured()
    if missing := [name for name in names if name not in servers]:
        raise NotFound(f"{home().mcp_servers} has no server {missing[0]} that runs on this machine")
    chosen = [servers[name] for name in names] if names else [s for s in servers.values() if not is_own(s)]
    for server in chosen:
        if is_own(server):
            raise NotFound(f"{server.name} {OWN}")
    return chosen


def _left_out() -> Iterator[str]:
    """:returns: a line for each server without a sandbox to test."""
    from ironcurtain.mcp_proxy.launch import is_own

    for server in _configured().values():
        if is_own(server):
            yield f"Not tested: {server.name} {OWN}."


def _of_server(server: CommandServer) -> Iterator[Report]:
    from ironcurtain.mcp_proxy.launch import Ground, prepare
    from ironcurtain.policy.loading import default_annotations
    from ironcurtain.prove.outside import Outside
    from ironcurtain.prove.report import Report
    from ironcurtain.prove.sandboxes import prove_sandbox

    subject = f"MCP server {server.name}"
    if server.sandbox is None:
        yield Report(f"{subject}: runs outside any sandbox, as mcp-servers.json says", (), complete=False)
        return
    with _ground() as (workspace, account, person), Outside(Path(person)) as outside:
        other = account.switched
        writers = default_annotations().writers() | {server.name}  # the program needs a directory for its links
        for kind in _kinds(other):
            launch = prepare(server, {}, Ground(os.environ, str(workspace), account=other, writers=writers, kind=kind))
            if launch.sandbox is not None:
                yield prove_sandbox(f"{subject}, in its sandbox", launch.sandbox, str(workspace), outside)


def _of_builtin() -> Iterator[Report]:
    from ironcurtain.cli.run import run
    from ironcurtain.codemode import pool
    from ironcurtain.codemode.monty import MontyInterpreters
    from ironcurtain.prove.outside import Outside
    from ironcurtain.prove.report import Report
    from ironcurtain.prove.sandboxes import prove_interpreter, prove_sandbox

    with _ground() as (_, account, person), Outside(Path(person)) as outside:
        kinds = _kinds(account.switched)
        around = pool.sandbox(account.switched, kinds[0])

        async def main(reactor: Any) -> Any:
            try:
                interpreters = MontyInterpreters(reactor, around=around)
                return await prove_interpreter(interpreters, str(outside.file), outside.secret)
            finally:
                await pool.close_pool()

        tried = run(main)
        yield Report("built-in agent, its interpreter", tried, complete=True, seen=tuple(outside.seen()))
        for kind in kinds:
            around = pool.sandbox(account.switched, kind)
            yield prove_sandbox("built-in agent, the process around its interpreter", around, "", outside)


def _of_agent(agent: str) -> Iterator[Report]:
    from ironcurtain.assembly import Application
    from ironcurtain.cli.run import run
    from ironcurtain.container.engine import Engine
    from ironcurtain.home.layout import person_home
    from ironcurtain.prove.outside import Outside
    from ironcurtain.prove.sandboxes import prove_container
    from ironcurtain.services.lifecycle import to_its_end
    from ironcurtain.session.model import SessionRequest

    async def main(reactor: Any) -> Report:
        application = Application.alone(reactor, home(), os.environ)
        await application.start()
        try:
            session = await application.manager.create(SessionRequest(agent, "", None, {}))
            with Outside(Path(person_home(os.environ, os.geteuid()))) as outside:
                engine = Engine.find(reactor, os.environ)
                return await prove_container(f"agent {agent}, in its container", engine, session.id, outside)
        finally:
            await to_its_end(application.stop("the command ends"))

    yield run(main)
