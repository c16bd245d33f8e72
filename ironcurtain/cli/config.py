"""``ironcurtain config``."""

from __future__ import annotations

import click

from ironcurtain.cli.output import as_json, home, print_settings, settings


@click.group()
def config() -> None:
    """Show the settings and where each came from."""


@config.command()
@as_json
def show(json_output: bool) -> None:
    """
    Print every setting in force and where it came from: a default, config.toml, or the environment.

    Keys are never printed: only where they will be read from.
    """
    from ironcurtain.home.settings import flatten

    where = home()
    effective = settings(where)
    values = dict(flatten(effective.settings))
    if not json_output:
        click.echo(f"home: {where.path}")
    print_settings(values, effective.origins, json_output)
