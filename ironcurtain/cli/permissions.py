"""``ironcurtain permissions`` and ``revoke``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.output import as_json, home, print_json, print_lines

if TYPE_CHECKING:
    from ironcurtain.operations.model import PermissionView


@click.command()
@as_json
def permissions(json_output: bool) -> None:
    """
    List the approvals that were kept, and for which calls nobody is asked because of them.

    'ironcurtain approve N --keep' keeps one. Each ends with its session, or with 'ironcurtain revoke N'.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.control.owners import Owners
    from ironcurtain.view.escalations import permission_lines

    where = home()
    found = run(lambda reactor: Owners(reactor, where).permissions())
    if json_output:
        print_json(found)
    elif not found:
        print_lines("No approvals were kept.")
    else:
        print_lines("\n\n".join("\n".join(permission_lines(view, time.time())) for view in found))


@click.command()
@click.argument("number", type=int)
def revoke(number: int) -> None:
    """
    Take back the approval of escalation NUMBER that was kept: people are asked again.

    A call that it permitted already goes on.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.control.owners import Owners
    from ironcurtain.view.escalations import revoked

    where = home()

    async def end(reactor: object) -> PermissionView:
        client = await Owners(reactor, where).of_permission(number)
        return await client.revoke(number)

    print_lines(revoked(run(end)))
