"""``ironcurtain config``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_settings, settings

if TYPE_CHECKING:
    from pathlib import Path

    from ironcurtain.home.layout import Home
    from ironcurtain.mcp_proxy.servers_config import ServerConfig


@click.group()
def config() -> None:
    """Show the settings with their sources, or check the configuration files."""


@config.command()
@as_json
def show(json_output: bool) -> None:
    """
    Print every setting in force with its source.

    The source is a default, config.toml, or the environment. Keys are never printed, only their sources.
    """
    from ironcurtain.home.settings import flatten

    where = home()
    effective = settings(where)
    values = dict(flatten(effective.settings))
    if not json_output:
        print_lines(f"home: {where.path}")
    print_settings(values, effective.origins, json_output)


@config.command()
@as_json
def check(json_output: bool) -> None:
    """
    Check config.toml, policy.toml and mcp-servers.json.

    The first error in each is reported, of MCP servers each one's. The daemon, 'ironcurtain reload' and 'ironcurtain
    doctor' make the same checks. 'ironcurtain policy check' also finds probable mistakes in rules. Exits with status 78
    if a file is wrong.

    Notes say which accounts pay for each agent, which have expired and which no agent can use; which fields of other
    MCP clients are ignored, and which servers cannot start. A server whose entry is wrong is left out; the others
    start.
    """
    from ironcurtain.configuration import check_files, examine_servers

    where = home()
    found = list(check_files(where, os.environ))
    errors = {file.path: [file.error] for file in found if file.error is not None}
    notes: dict[Path, list[str]] = {}
    if where.config not in errors:
        notes[where.config] = list(_account_notes(where))
    if where.mcp_servers not in errors:
        servers = list(examine_servers(where, os.environ, os.getcwd()))
        notes[where.mcp_servers] = list(_notes(servers))
        if wrong := [server.reading.error for server, _ in servers if server.reading.error is not None]:
            errors[where.mcp_servers] = wrong
    if json_output:
        print_json(
            [
                {
                    "file": str(file.path),
                    "exists": file.exists,
                    "error": "\n".join(map(str, errors.get(file.path, ()))) or None,
                    "notes": notes.get(file.path, []),
                }
                for file in found
            ]
        )
    for file in () if json_output else found:
        for error in errors.get(file.path, ()):
            print_lines(f"wrong  {error}")
        if file.path not in errors:
            print_lines(f"ok     {file.path}{'' if file.exists else ' does not exist: the defaults apply'}")
    for path, of_file in () if json_output else notes.items():
        for note in of_file:
            print_lines(f"note   {path.name}: {note}")
    if errors:
        raise SystemExit(78)


def _account_notes(where: Home) -> Iterator[str]:
    from ironcurtain.cli.account_list import findings
    from ironcurtain.cli.payer_list import payer_notes

    yield from (f"{found.what}: {found.detail}" for found in findings(where))
    yield from payer_notes(where)


def _notes(servers: Iterable[tuple[ServerConfig, str | None]]) -> Iterator[str]:
    for server, obstacle in servers:
        yield from (f"server {server.name}: {note}" for note in server.reading.notes)
        if server.reading.variables:
            yield f"server {server.name}: gets {', '.join(server.reading.variables)} of your environment"
        if obstacle is not None and server.reading.error is None:
            yield f"server {server.name} does not start: {obstacle}"
