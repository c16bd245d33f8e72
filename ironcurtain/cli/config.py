"""``ironcurtain config``."""

from __future__ import annotations

import os

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_settings, settings


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
    """
    from ironcurtain.configuration import check_files

    found = list(check_files(home(), os.environ))
    if json_output:
        print_json(
            [
                {"file": str(file.path), "exists": file.exists, "error": str(file.error) if file.error else None}
                for file in found
            ]
        )
    for file in () if json_output else found:
        if file.error is not None:
            print_lines(f"wrong  {file.error}")
        else:
            print_lines(f"ok     {file.path}{'' if file.exists else ' does not exist: the defaults apply'}")
    if any(file.error is not None for file in found):
        raise SystemExit(78)
