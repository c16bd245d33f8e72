"""The option ``--backend``."""

from __future__ import annotations

from collections.abc import Sequence

import click


class BackendOption(click.ParamType[str]):
    """A backend with what follows its colon. A variable of the environment holds one, which may contain spaces."""

    name = "backend"

    def split_envvar_value(self, rv: str) -> Sequence[str]:
        """:returns: the whole value."""
        return [rv] if rv else []
