"""The table ``[fleet]`` of ``config.toml``."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ironcurtain.home.sections import Section

Label = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,63}\Z")]
"""By which hosts are chosen."""


class FleetSettings(Section, frozen=True):
    """
    Of a daemon that is a member of a fleet.

    :param credentials: the file that ``ironcurtain fleet join`` writes; empty: it is no member.
    :param servers: addresses of NATS servers, if not those of that file.
    :param labels: by which others choose this host for a task.
    :param capacity: with so many open sessions it takes no task of others.
    """

    credentials: str = ""
    servers: tuple[str, ...] = ()
    labels: tuple[Label, ...] = ()
    capacity: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 20
