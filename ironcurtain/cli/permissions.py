"""``ironcurtain permissions`` and ``revoke``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.numbers import NUMBER
from ironcurtain.cli.output import as_json, home, print_json, print_lines

if TYPE_CHECKING:
    from ironcurtain.operations.model import PermissionView


@click.command()
@as_json
def permissions(json_output: bool) -> None:
    """
    List the kept approvals, with the calls that they permit without asking.

    'ironcurtain approve N --keep' creates one. It ends with its session, or with 'ironcurtain revoke N'.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.control.owners import Owners
    from ironcurtain.view.escalations import permission_lines

    where = home()
    found = run(lambda reactor: Owners(reactor, where).permissions())
    if json_output:
        print_json(found)
    elif not found:
        print_lines("No kept approvals.")
    else:
        print_lines("\n\n".join("\n".join(permission_lines(view, time.time())) for view in found))


@click.command()
@click.argument("number", type=NUMBER)
def revoke(number: int) -> None:
    """
    Revoke the kept approval of escalation NUMBER, so that its calls are asked about again.

    Calls that are already in progress continue.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.control.owners import Owners
    from ironcurtain.view.escalations import revoked

    where = home()

    async def end(reactor: object) -> PermissionView:
        client = await Owners(reactor, where).of_permission(number)
        return await client.revoke(number)

    print_lines(revoked(run(end)))
