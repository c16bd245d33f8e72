"""``ironcurtain prove``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import agents
from ironcurtain.cli.output import as_json, home, print_json, print_lines, settings
from ironcurtain.cli.paths import use_host_programs

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.servers_config import CommandServer, ServerConfig
    from ironcurtain.process.accounts import Account
    from ironcurtain.prove.places import Machine
    from ironcurtain.prove.report import Report
    from ironcurtain.prove.verdict import Untested
    from ironcurtain.sandbox.spec import Kind

NEVER = (
    ("protected files in sandboxes", "no session is started"),
    ("the console", "it needs a person"),
)
"""What is never tested, and why."""


@click.command()
@click.option(
    "--agent",
    shell_complete=agents,
    help="Test the container or sandbox of this agent, one of 'ironcurtain start --list-agents'.",
)
@click.option("--server", "names", multiple=True, help="Test the sandbox of this MCP server; may be repeated.")
@as_json
def prove(agent: str | None, names: tuple[str, ...], json_output: bool) -> None:
    """
    Test the sandboxes with a hostile program, which tries to break out of them.

    Without options: the built-in agent's interpreter, its process, and every MCP server in mcp-servers.json that runs
    on this machine: its sandbox, in each kind of sandbox that works here; of git-remote, the sandboxes in which it runs
    git. The program tries some hundred ways to read, write, reach or end what is outside, by files, links, git,
    sockets, other processes, system calls, devices and limits. The file server, which runs outside a sandbox, gets
    hostile calls, and 'diff', 'export' and git work on a workspace with planted links and settings. The targets are
    created for the test: a file with a secret, servers on this machine, and a process; whether an attempt had an effect
    is also checked from outside.

    The last line says what was not tested, and what is not limited on this machine.

    Exit status: 0 each attempt failed, 1 one succeeded, 69 a test could not run.
    """
    from ironcurtain.prove.places import prove_server
    from ironcurtain.prove.report import Report
    from ironcurtain.prove.verdict import UNKNOWN, Untested, Verdict

    servers = _configured()
    chosen = _chosen(servers, names, every=not agent)
    use_host_programs()
    results: list[Report | Untested] = []
    if agent:
        results += _of_agent(agent)
    if chosen or not agent:
        machine = _machine()
        if not (agent or names):
            results += _of_builtin(machine)
        results += (result for server in chosen for result in prove_server(server, machine))
    results += _left_out(agent, names, [each for name, each in servers.items() if each not in chosen])
    reports = [result for result in results if isinstance(result, Report)]
    verdict = Verdict(reports, [result for result in results if isinstance(result, Untested)])
    if json_output:
        print_json(verdict.as_json())
    else:
        for report in reports:
            click.echo("\n".join(report.lines()))
    if not json_output or verdict.status == UNKNOWN:
        print_lines(verdict.sentence, err=json_output)
    raise SystemExit(verdict.status)


def _machine() -> Machine:
    """:raises Unavailable: no kind of sandbox works."""
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.process.accounts import session_account
    from ironcurtain.prove.places import Machine

    account = session_account(settings(home()).settings.run_as, os.environ, None, os.geteuid())
    return Machine(os.environ, person_home(os.environ, os.geteuid()), account, _kinds(account.switched))


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


def _configured() -> dict[str, ServerConfig]:
    """:returns: the servers, by name."""
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.session.tool_files import ToolFiles

    where = home()
    every = ToolFiles.chosen(where, {}).load_servers(str(where.path), person_home(os.environ, os.geteuid()), os.environ)
    return {server.name: server for server in every}


def _chosen(servers: Mapping[str, ServerConfig], names: Sequence[str], *, every: bool) -> list[CommandServer]:
    """
    :param names: the servers that the user named.
    :param every: whether none means all.
    :raises NotFound: no server of a name runs on this machine.
    """
    from ironcurtain.errors import NotFound
    from ironcurtain.mcp_proxy.servers_config import CommandServer

    found = {name: each for name, each in servers.items() if isinstance(each, CommandServer)}
    if missing := [name for name in names if name not in found]:
        raise NotFound(f"{home().mcp_servers} has no server {missing[0]} that runs on this machine")
    return [found[name] for name in names] if names or not every else list(found.values())


def _left_out(agent: str | None, names: Sequence[str], servers: Sequence[ServerConfig]) -> Iterator[Untested]:
    """:param servers: those that were not chosen."""
    from ironcurtain.mcp_proxy.servers_config import HttpServer
    from ironcurtain.prove.verdict import Untested

    if agent or names:
        yield Untested("the built-in agent", "it is without options")
    yield Untested("containers of other agents" if agent else "containers of agents", "--agent names one")
    for server in servers:
        is_remote = isinstance(server, HttpServer)
        yield Untested(f"MCP server {server.name}", "it is reached by HTTP" if is_remote else "--server names it")
    yield from (Untested(name, reason) for name, reason in NEVER)


def _of_builtin(machine: Machine) -> Iterator[Report]:
    from ironcurtain.cli.run import run
    from ironcurtain.codemode import pool
    from ironcurtain.codemode.monty import MontyInterpreters
    from ironcurtain.prove.report import Report
    from ironcurtain.prove.sandboxes import prove_interpreter, prove_sandbox

    account = machine.account.switched
    with machine.outside() as outside:
        around = pool.sandbox(account, machine.kinds[0])

        async def main(reactor: Any) -> Any:
            try:
                interpreters = MontyInterpreters(reactor, around=around)
                return await prove_interpreter(interpreters, str(outside.file), outside.secret)
            finally:
                await pool.close_pool()

        tried = run(main)
        yield Report("built-in agent, its interpreter", tried, complete=True, seen=tuple(outside.seen()))
        for kind in machine.kinds:
            around = pool.sandbox(account, kind)
            yield prove_sandbox("built-in agent", around, "", outside, place="the process around its interpreter")


def _of_agent(agent: str) -> Iterator[Report]:
    from ironcurtain.assembly import Application
    from ironcurtain.cli.run import run
    from ironcurtain.container.engine import Engine
    from ironcurtain.container_agent.agent import ContainerAgent
    from ironcurtain.container_agent.bubblewrapped.description import interpreter
    from ironcurtain.container_agent.places import BUBBLEWRAP, SANDBOX
    from ironcurtain.container_agent.provision import scratch_mb
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.prove.outside import Outside, Room
    from ironcurtain.prove.sandboxes import prove_agent, prove_container
    from ironcurtain.sandbox.spec import MEBIBYTE
    from ironcurtain.services.lifecycle import to_its_end
    from ironcurtain.session.model import SessionRequest

    async def main(reactor: Any) -> Report:
        application = Application.alone(reactor, home(), os.environ)
        await application.start()
        try:
            session = await application.manager.create(SessionRequest(agent, "", None, {}))
            resources, own = application.manager.services.settings.resources, session.agent
            with Outside(Path(person_home(os.environ, os.geteuid()))) as outside:
                if session.identity.request.options.get(SANDBOX) == BUBBLEWRAP and isinstance(own, ContainerAgent):
                    assert own.sandbox is not None
                    room = Room(resources.memory_mb * MEBIBYTE, scratch_mb(resources) * MEBIBYTE)
                    account = application.manager.services.choose_account(None).switched
                    subject = f"agent {agent}, in its sandbox of bubblewrap"
                    return await prove_agent(subject, own.sandbox.run, interpreter(), room, outside, account)
                engine = Engine.find(reactor, os.environ)
                return await prove_container(f"agent {agent}, in its container", engine, session.id, outside)
        finally:
            await to_its_end(application.stop("the command ends"))

    yield run(main)
