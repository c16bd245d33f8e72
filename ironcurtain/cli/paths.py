"""Paths as arguments of commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ironcurtain.home.layout import find_home
from ironcurtain.home.user_paths import user_path


class UserPath(click.Path):
    """A path in which ``~`` and ``$HOME`` are expanded, since shells do not do that in ``--option=~/x``."""

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """
        :returns: a ``Path``.
        :raises UsageError: it cannot be used, as :func:`~ironcurtain.home.user_paths.user_path` says.
        """
        return super().convert(user_path(os.fspath(value)), param, ctx)


def use_host_programs() -> None:
    """Take the programs that libraries start for us, such as a pager or a browser, from outside of workspaces, too."""
    from ironcurtain.process.search_path import host_path
    from ironcurtain.session.workspace import keep_out_workspaces

    keep_out_workspaces(find_home(os.environ, os.geteuid()))
    os.environ["PATH"] = host_path()
