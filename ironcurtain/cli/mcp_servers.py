"""``ironcurtain mcp``: the servers of ``mcp-servers.json``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.mcp_candidates import NAME_LIMIT, Candidate, agreed, may_start, sandbox_of, wanted
from ironcurtain.cli.mcp_drafts import Drafts, drafts, write_drafts
from ironcurtain.cli.mcp_trial import Trial, pins_kept_for, try_servers
from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.cli.questions import confirmed
from ironcurtain.errors import ConfigurationError, NotFound, UsageError
from ironcurtain.home.user_paths import current_directory
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.pins import PinFile
    from ironcurtain.mcp_proxy.server_tables import ServerTable
    from ironcurtain.session.tool_files import ToolFiles

ALL_THE_SAME = "--anyway adds it all the same."
MORE_ACCESS = "--read, --write and --network extend its sandbox."


@click.command()
@click.argument("name", required=False)
@click.argument("command", nargs=-1)
@click.option("--url", help="The server is reached by HTTP at this address.")
@click.option("--from", "source", metavar="FILE|CLIENT", help="Take the servers of another MCP client.")
@click.option("--env", multiple=True, metavar="NAME[=VALUE]", help="Give the server a variable of your environment.")
@click.option("--network", multiple=True, metavar="HOST", help="Let the server connect to this host; may be repeated.")
@click.option("--read", multiple=True, metavar="DIRECTORY", help="Let the server read this directory, too.")
@click.option("--write", multiple=True, metavar="DIRECTORY", help="Let the server change this directory, too.")
@click.option("--yes", is_flag=True, help="Add without a question.")
@click.option("--anyway", is_flag=True, help="Add also a server that does not start.")
def add(
    name: str | None,
    command: tuple[str, ...],
    url: str | None,
    source: str | None,
    env: tuple[str, ...],
    network: tuple[str, ...],
    read: tuple[str, ...],
    write: tuple[str, ...],
    yes: bool,
    anyway: bool,
) -> None:
    """
    Add an MCP server, or those of another client.

    The server NAME runs as COMMAND; it is added to mcp-servers.json:

    \b
      ironcurtain mcp add notes -- npx -y @example/notes-server
      ironcurtain mcp add wiki --url https://wiki.example.org/mcp
      ironcurtain mcp add --from .mcp.json

    The server is started in its sandbox, with an empty workspace, and lists its tools. For tools that IronCurtain does
    not know, annotations are drafted from their definitions: which arguments are paths or addresses, and what is done
    with them. You see the drafts, and why they are so. If you agree, they are written to policy.toml, with a rule that
    asks about all calls of the server, and the server to mcp-servers.json. Nothing else in these files changes.

    --from takes a file, or claude-desktop, claude-code, vscode, cursor or codex, whose files are looked up; with NAME
    only that server. You see what stands there before anything of it runs. Fields that give a server rights, such as
    sandbox and env_command, are left out. Servers that are there already are left as they are. Secrets are not printed:
    those that your environment has under the same name become references to it.

    A server that does not start is not added, unless you say so. Exits with status 69 then.
    """
    found = wanted(name, command, url, source, env, sandbox_of(network, read, write))
    files, where = _files(), home()
    taken = _names(files)
    new = [each for each in found if not _is_taken(each.name, taken, quiet=source is not None)]
    if not new:
        print_lines("Nothing was added.")
        return
    if source is not None and not may_start(new, yes):
        raise SystemExit(1)
    pins, accepted, failed = _pins([each.name for each in new]), set[str](), False
    with pins_kept_for(accepted, pins):
        trials = try_servers({each.name: each.entry for each in new if not each.disabled})
        for each in new:
            trial = trials.get(each.name, Trial({}))
            drafted = _show(each, trial, files)
            if _is_wanted(each, trial, yes, anyway):
                _write_server(where.mcp_servers, each)
                accepted.add(each.name)
                print_lines(f"Added {each.name} to {where.mcp_servers}.")
                if drafted is not None:
                    _write_drafts(drafted, files)
            failed |= bool(trial.failure) and each.name not in accepted
    if failed or not accepted:
        raise SystemExit(69 if failed else 1)


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Write without a question.")
def annotate(name: str, yes: bool) -> None:
    """
    Draft annotations for tools that have none.

    The server NAME is started in its sandbox, with an empty workspace, and lists its tools. What you agree to is
    written to policy.toml, as by 'ironcurtain mcp add'.
    """
    files = _files()
    trial = _try(name, files)
    found = drafts(name, trial.tools, files.load_policy())
    _print(found.lines())
    _print_problems(name, trial)
    if not found.drafted:
        print_lines("There is nothing to write.")
    elif yes or agreed(f"Write {counted(len(found.drafted), 'annotation')}?"):
        _write_drafts(found, files)


@click.command()
@click.argument("name")
@as_json
def test(name: str, json_output: bool) -> None:
    """
    Start a server in its sandbox, and list its tools.

    The workspace is empty. For each tool it prints the roles of the arguments, or that you are asked about each call.
    Exits with status 69 if the server does not start.
    """
    files = _files()
    trial = _try(name, files)
    found = drafts(name, trial.tools, files.load_policy())
    if json_output:
        asked = sorted({*found.drafted, *found.refused})
        lists = {"known": sorted(found.known), "asks": asked, "withheld": sorted(trial.withheld)}
        print_json({"server": name, **lists, "faults": list(trial.faults)})
        return
    asks = {tool: "nobody has described its arguments" for tool in found.drafted}
    _print(Drafts(name, found.known, {}, {**asks, **found.refused}).lines())
    _print_problems(name, trial)
    if found.drafted:
        print_lines(f"To describe them: ironcurtain mcp annotate {name}")


@click.command(name="list")
@as_json
def list_(json_output: bool) -> None:
    """List the servers, and how their tools are judged."""
    from ironcurtain.configuration import examine_servers
    from ironcurtain.mcp_proxy.names import usable_name
    from ironcurtain.mcp_proxy.servers_config import HttpServer

    where, files = home(), _files()
    judged = _judged(files)
    rows: list[tuple[str, str, str]] = []
    for server, obstacle in examine_servers(where, os.environ, str(current_directory())):
        runs = server.host if isinstance(server, HttpServer) else os.path.basename(server.command)
        state = f"does not start: {obstacle}" if obstacle is not None else judged(server.name)
        rows.append((server.name, one_line(runs, NAME_LIMIT), state))
    enabled = {row[0] for row in rows}
    disabled = [name for each in _entries(files).entries if (name := usable_name(each.name)) not in enabled]
    rows += [(name, "", "disabled") for name in disabled]
    if json_output:
        print_json([{"server": name, "runs": runs, "state": state} for name, runs, state in rows])
    else:
        print_table(("SERVER", "RUNS", "TOOLS"), rows)


@click.command()
@click.argument("name")
def remove(name: str) -> None:
    """
    Remove a server from mcp-servers.json.

    The pinned definitions of its tools are removed, too. Rules and annotations in policy.toml stay, and so does a login
    ('ironcurtain mcp logout').
    """
    from ironcurtain.files.atomic import write_atomically
    from ironcurtain.home.json_editing import without_member
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.mcp_proxy.names import usable_name

    files = _files()
    table = _entries(files)
    servers = [each.name for each in table.entries]
    written = name if name in servers else next((n for n in servers if usable_name(n) == usable_name(name)), None)
    text = read_configuration(files.servers)
    if written is None or text is None:
        raise NotFound(f"there is no MCP server {name!r} in {files.servers}")
    write_atomically(files.servers, without_member(str(files.servers), text, table.place, written).encode())
    for file in _pins([usable_name(written)]).values():
        file.path.unlink(missing_ok=True)
    print_lines(f"Removed {one_line(name, NAME_LIMIT)} from {files.servers}.")


def _files() -> ToolFiles:
    from ironcurtain.session.tool_files import ToolFiles

    return ToolFiles.chosen(home(), {})


def _entries(files: ToolFiles) -> ServerTable:
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.mcp_proxy.client_files import table
    from ironcurtain.session.tool_files import default_servers

    text = read_configuration(files.servers)
    return table(default_servers() if text is None else text, str(files.servers))


def _names(files: ToolFiles) -> set[str]:
    from ironcurtain.mcp_proxy.names import usable_name

    return {usable_name(each.name) for each in _entries(files).entries}


def _is_taken(name: str, names: set[str], *, quiet: bool) -> bool:
    """:raises UsageError: the only server to add has the name of another one."""
    from ironcurtain.mcp_proxy.names import taken

    if not (why := taken(name, names)):
        return False
    if not quiet:
        raise UsageError(f"{why}; 'ironcurtain mcp remove {name}' removes it" if name in names else why)
    print_lines(f"{name} is left out: {why}.")
    return True


def _pins(names: Sequence[str]) -> dict[str, PinFile]:
    from ironcurtain.mcp_proxy.pins import PinFiles

    files = PinFiles(home().tool_definitions, time.time)
    return {name: files.of(name) for name in names}


def _try(name: str, files: ToolFiles) -> Trial:
    """
    :returns: the trial of a configured server.
    :raises Unavailable: it does not start.
    """
    from ironcurtain.errors import Unavailable
    from ironcurtain.mcp_proxy.names import usable_name

    entries = {usable_name(each.name): each.value for each in reversed(_entries(files).entries)}
    if (entry := entries.get(name)) is None:
        raise NotFound(f"there is no MCP server {name!r} in {files.servers}")
    if not isinstance(entry, dict):
        raise UsageError(f"MCP server {name} is no table of fields in {files.servers}")
    if Candidate(name, entry).disabled:
        raise UsageError(f"MCP server {name} is disabled in {files.servers}")
    trial = try_servers({name: entry})[name]
    if trial.failure:
        raise Unavailable(f"MCP server {name} {one_line(trial.failure)}")
    return trial


def _show(candidate: Candidate, trial: Trial, files: ToolFiles) -> Drafts | None:
    """:returns: the drafts for its tools; ``None`` if it did not start."""
    name = candidate.name
    if candidate.secrets:
        which = ", ".join(one_line(each, NAME_LIMIT) for each in candidate.secrets)
        print_lines(f"{name}: {which} will stand in mcp-servers.json, which only you can read; env_command is better.")
    if candidate.disabled:
        print_lines(f"{name} is disabled: it was not tried.")
    elif trial.failure:
        print_lines(f"MCP server {name} {one_line(trial.failure)}")
    else:
        found = drafts(name, trial.tools, files.load_policy())
        _print(found.lines())
        _print_problems(name, trial)
        return found
    return None


def _is_wanted(candidate: Candidate, trial: Trial, yes: bool, anyway: bool) -> bool:
    if trial.failure and not anyway:
        if yes or not sys.stdin.isatty():
            more = f" {MORE_ACCESS}" if '"sandbox": {' in trial.failure else ""  # it says what the sandbox lacks
            print_lines(f"{candidate.name} was not added. {ALL_THE_SAME}{more}", err=True)
            return False
        return confirmed(f"Add {candidate.name} all the same?", default=False)
    return yes or agreed(f"Add {candidate.name}?")


def _write_server(path: Path, candidate: Candidate) -> None:
    from ironcurtain.files.atomic import write_atomically
    from ironcurtain.home.json_editing import with_member
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.mcp_proxy.client_files import table
    from ironcurtain.session.tool_files import default_servers

    text = read_configuration(path)
    text = f"{default_servers()}\n" if text is None else text
    place = table(text, str(path)).place
    write_atomically(path, with_member(str(path), text, place, candidate.name, dict(candidate.entry)).encode())


def _write_drafts(found: Drafts, files: ToolFiles) -> None:
    try:
        for line in write_drafts(found, files.policy, files.load_policy()):
            print_lines(line)
    except ConfigurationError as e:
        print_lines(f"The annotations were not written, so that each call asks: {e}", err=True)


def _print_problems(name: str, trial: Trial) -> None:
    from ironcurtain.mcp_proxy.pins import withheld_notice

    for fault in trial.faults:
        print_lines(f"MCP server {name}: {one_line(fault)}")
    if trial.withheld:
        print_lines(withheld_notice(name, trial.withheld))


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print_lines(line)


def _judged(files: ToolFiles) -> Any:
    """:returns: what says how the tools of a server are judged."""
    from ironcurtain.policy.coverage import coverage
    from ironcurtain.policy.loading import default_annotations

    policy = files.load_policy()
    known = default_annotations().merged(policy.annotations)

    def judged(server: str) -> str:
        pins = [name for name, pin in _pins([server])[server].read().items() if pin.definition is not None]
        return str(coverage(server, pins, known, policy)) if pins else "not known before its first start"

    return judged
