"""Numbers of sessions and escalations as arguments of commands."""

from __future__ import annotations

import click

from ironcurtain.home.host_numbers import read_number


class NumberType(click.ParamType[int]):
    """A number of this host, such as 12, or of another one of its fleet, such as build-3/12."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """:returns: the number."""
        if isinstance(value, int):
            return value
        if (number := read_number(str(value))) is None:
            self.fail(f"{value!r} is no number, such as 12, or build-3/12 of another host", param, ctx)
        return number


NUMBER = NumberType()
