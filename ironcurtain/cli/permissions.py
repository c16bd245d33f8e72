"""``ironcurtain permissions`` and ``revoke``."""

from __future__ import annotations

import time

import click

from ironcurtain.cli.numbers import NUMBER
from ironcurtain.cli.output import as_json, home, print_json, print_lines


@click.command()
@as_json
def permissions(json_output: bool) -> None:
    """
    List the kept approvals, with the calls that they permit without asking.

    'ironcurtain approve N --keep' creates one. It ends with its session, or with 'ironcurtain revoke N'.
    """
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.view.escalations import permission_lines

    found = result(BlockingOwners(home()).permissions())
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
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.view.escalations import revoked

    client = result(BlockingOwners(home()).of_permission(number))
    print_lines(revoked(result(client.revoke(number))))
