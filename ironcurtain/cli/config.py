"""``ironcurtain config``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_settings, settings

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home


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

    The first error in each is reported. The daemon, 'ironcurtain reload' and 'ironcurtain doctor' make the same checks.
    'ironcurtain policy check' also finds probable mistakes in rules. Exits with status 78 if a file is wrong.

    Notes say which fields of other MCP clients are ignored, and which servers cannot start.
    """
    from ironcurtain.configuration import check_files

    where = home()
    found = list(check_files(where, os.environ))
    notes = [] if any(file.path == where.mcp_servers and file.error for file in found) else list(_notes(where))
    if json_output:
        print_json(
            [
                {
                    "file": str(file.path),
                    "exists": file.exists,
                    "error": str(file.error) if file.error else None,
                    "notes": notes if file.path == where.mcp_servers else [],
                }
                for file in found
            ]
        )
    for file in () if json_output else found:
        if file.error is not None:
            print_lines(f"wrong  {file.error}")
        else:
            print_lines(f"ok     {file.path}{'' if file.exists else ' does not exist: the defaults apply'}")
    for note in () if json_output else notes:
        print_lines(f"note   {where.mcp_servers.name}: {note}")
    if any(file.error is not None for file in found):
        raise SystemExit(78)


def _notes(where: Home) -> Iterator[str]:
    from ironcurtain.configuration import examine_servers

    for server, obstacle in examine_servers(where, os.environ, os.getcwd()):
        yield from (f"server {server.name}: {note}" for note in server.reading.notes)
        if server.reading.variables:
            yield f"server {server.name}: gets {', '.join(server.reading.variables)} of your environment"
        if obstacle is not None:
            yield f"server {server.name} does not start: {obstacle}"
