"""``ironcurtain config``."""

from __future__ import annotations

import click

from ironcurtain.cli.output import as_json, home, print_json, print_table, settings


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
    from ironcurtain.settings import flatten

    where = home()
    effective = settings(where)
    values = dict(flatten(effective.settings))
    if json_output:
        print_json({name: {"value": values.get(name), "from": origin} for name, origin in effective.origins.items()})
        return
    click.echo(f"home: {where.path}")
    print_table(
        ("SETTING", "VALUE", "FROM"),
        [(name, _shown(values.get(name)), origin) for name, origin in effective.origins.items()],
    )


def _shown(value: object) -> str:
    if value in (None, "", ()):
        return "-"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
