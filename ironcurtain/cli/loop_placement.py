"""A loop that another host of the fleet runs: a certain one, or one with room."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironcurtain.cli.output import settings
from ironcurtain.cli.placement import give
from ironcurtain.errors import UsageError
from ironcurtain.fleet.tasks import Body
from ironcurtain.fleet.trust import NAME as HOST_NAME
from ironcurtain.home.host_numbers import ANY_HOST
from ironcurtain.loop.kind import NAME
from ironcurtain.loop.model import IterationMode
from ironcurtain.loop.state import read_prompt

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.loop.kind import LoopOptions


def give_loop(where: Home, options: LoopOptions, place: Path, given: Mapping[str, Any]) -> None:
    """
    Keep a loop as a task.

    :param place: the directory with its prompt.
    :param given: the values of the command's options.
    :raises UsageError: it cannot run on another host, or there is no prompt.
    :raises NotFound: no daemon runs here as a member of a fleet.
    """
    labels, on = given["labels"], _placed_on(given["host"], given["labels"])
    agent = options.settings["loop.agent"]
    if not agent:
        raise UsageError("--on needs --agent: a command of one machine is not sent to another")
    if given["workspace"] or given["resume"] or options.mode is not IterationMode.HEADLESS:
        raise UsageError("--on takes no --workspace, --resume, --pty or --observe")
    if given["restart"] and (on or not given["repo"]):
        raise UsageError("--restart needs --on any or --label, and --repo: it begins again from the repository")
    values = {**options.settings, "event_loop.prompt": _prompt(options.settings, place, bool(given["repo"]))}
    alone = msgspec.structs.replace(options, settings=values, alone=True)
    body = Body(
        task=values["event_loop.prompt"].strip().partition("\n")[0] or agent,
        kind=NAME,
        options={NAME: msgspec.to_builtins(alone)} | ({"repo": given["repo"]} if given["repo"] else {}),
        budget=settings(where).settings.budget,
        restart=given["restart"],
    )
    give(where, agent, body, labels, on)


def _placed_on(host: str | None, labels: Sequence[str]) -> str:
    """
    :param host: the value of ``--on``.
    :returns: the only host that may take a task; empty: any.
    :raises UsageError: it is no name, or labels are given with it.
    """

    if host in (None, ANY_HOST):
        return ""
    if labels:
        raise UsageError("--label chooses the machine: omit --on, or give --on any")
    if HOST_NAME.fullmatch(host) is None:
        raise UsageError("--on takes the name of a machine, as 'ironcurtain fleet status' lists it")
    return host


def _prompt(values: Mapping[str, Any], place: Path, cloned: bool) -> str:

    file = place / Path(values["event_loop.prompt_file"])
    if cloned and not values["event_loop.prompt"] and not os.path.lexists(file):
        return ""  # it is a file of the repository
    return read_prompt(values["event_loop.prompt"], file, place)
