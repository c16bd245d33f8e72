"""Small things that commands share: the home, tables, JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from ironcurtain.home import Home, find_home, read_configuration
from ironcurtain.settings import Effective, load

as_json = click.option("--json", "json_output", is_flag=True, help="Print JSON, for programs.")
"""The option of every command whose output is data."""


def home() -> Home:
    """:returns: the home that the environment names."""
    return find_home(os.environ, os.geteuid())


def settings(where: Home) -> Effective:
    """:returns: the settings in force."""
    return load(str(where.config), read_configuration(where.config), os.environ)


def print_json(value: Any) -> None:
    """Print a value as JSON, indented."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the last column is as wide as it likes."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header) - 1)]
    for row in (header, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())


def ago(seconds: float) -> str:
    """:returns: a time span in its largest fitting unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
