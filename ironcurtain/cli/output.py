"""Helpers that commands share: the home, tables, JSON."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.home.layout import Home, find_home
from ironcurtain.text.columns import Span, fold, unstyled
from ironcurtain.text.display import table

if TYPE_CHECKING:
    from ironcurtain.home.settings import Effective

as_json = click.option("--json", "json_output", is_flag=True, help="Print JSON, for programs.")
"""The option of every command whose output is data."""


def home() -> Home:
    """:returns: the home that the environment selects."""
    return find_home(os.environ, os.geteuid())


def settings(where: Home) -> Effective:
    """:returns: the settings in force."""
    from ironcurtain.configuration import read_settings  # slow to import; most commands need no settings

    return read_settings(where.config, os.environ)


def print_json(value: Any) -> None:
    """Print a value as JSON, indented, with times in ISO 8601."""
    from ironcurtain.operations.json_text import json_text

    click.echo(json_text(value))


def print_text(text: str, *, err: bool = False) -> None:
    """
    Print text, wrapped to the width of the terminal, or to 80 columns without one.

    :param text: its lines are wrapped at spaces, and keep their indentation.
    :param err: on standard error.
    """
    for line in _folded(text):
        click.echo(line, err=err)


def print_lines(text: str, *, err: bool = False) -> None:
    """
    Print lines as :func:`fitted` has them.

    :param err: on standard error.
    """
    click.echo(fitted(text, err=err), err=err)


def fitted(text: str, *, err: bool = False) -> str:
    """
    :param err: whether it goes to standard error.
    :returns: the text with its lines broken at spaces where they go to a terminal, whole where a program reads them.
    """
    if not (sys.stderr if err else sys.stdout).isatty():
        return text
    return "\n".join(_folded(text))


def _folded(text: str) -> Iterator[str]:
    width = shutil.get_terminal_size().columns
    for line in text.split("\n"):
        yield from map(unstyled, fold((Span(line),), width))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, err: bool = False) -> None:
    """
    Print rows in columns; the last column has any width.

    :param err: on standard error.
    """
    for line in table(header, rows):
        click.echo(line, err=err)


def print_settings(values: Mapping[str, Any], origins: Mapping[str, str], json_output: bool) -> None:
    """Print settings with their sources: a table, or one JSON object."""
    if json_output:
        print_json({name: {"value": values.get(name), "from": origin} for name, origin in origins.items()})
        return
    rows = [(name, _shown(values.get(name)), origin) for name, origin in origins.items()]
    print_table(("SETTING", "VALUE", "FROM"), rows)


def fits_screen(lines: Sequence[str]) -> bool:
    """:returns: whether text needs no pager: the output is not a terminal, or the text fits on the screen."""
    if not sys.stdout.isatty():
        return True
    columns, rows = shutil.get_terminal_size()
    return sum(len(line) // max(columns, 1) + 1 for line in lines) < rows


def _shown(value: object) -> str:
    if value is None or value in ("", (), []):
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
