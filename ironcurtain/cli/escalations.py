"""``ironcurtain escalations``, ``approve`` and ``deny``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.output import as_json, home, print_json

if TYPE_CHECKING:
    from ironcurtain.escalation import Outcome
    from ironcurtain.operations.model import EscalationView


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also those that are decided.")
@as_json
def escalations(everything: bool, json_output: bool) -> None:
    """
    List the calls that wait for a decision, with all that they would do.

    Answer with 'ironcurtain approve N' or 'ironcurtain deny N'.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.control.owners import Owners
    from ironcurtain.operations.words import escalation_lines

    where = home()
    found = run(lambda reactor: Owners(reactor, where).escalations(everything))
    if json_output:
        print_json(found)
    elif not found:
        click.echo("Nothing waits for a decision.")
    else:
        click.echo("\n\n".join("\n".join(escalation_lines(view, time.time())) for view in found))


@click.command()
@click.argument("number", type=int)
@click.option("--digest", help="Approve only if the call's digest is this one, as 'escalations --json' shows it.")
@click.option("--keep", is_flag=True, help="Ask no more about such calls in this session: 'escalations' says which.")
def approve(number: int, digest: str | None, keep: bool) -> None:
    """
    Let the waiting call NUMBER happen: this call, once, exactly as it was shown.

    With --keep the approval stands until the session ends, for the calls that 'ironcurtain escalations' names with this
    one. 'ironcurtain permissions' lists what stands, 'ironcurtain revoke' ends it.
    """
    from ironcurtain.escalation import Outcome

    _decide(number, Outcome.APPROVED, digest, keep)


@click.command()
@click.argument("number", type=int)
def deny(number: int) -> None:
    """
    Refuse the waiting call NUMBER. The agent is told that a person said no.
    """
    from ironcurtain.escalation import Outcome

    _decide(number, Outcome.DENIED, None, False)


def _decide(number: int, outcome: Outcome, digest: str | None, keep: bool) -> None:
    from ironcurtain.cli.run import run
    from ironcurtain.control.owners import Owners
    from ironcurtain.operations.words import decided

    where = home()

    async def decide(reactor: object) -> EscalationView:
        client, view = await Owners(reactor, where).of_escalation(number)
        return await client.decide(number, outcome, digest or view.digest, keep)

    click.echo(decided(run(decide)))
