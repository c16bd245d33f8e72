"""``ironcurtain escalations``, ``approve`` and ``deny``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.output import ago, as_json, home, print_json

if TYPE_CHECKING:
    from ironcurtain.escalation import Outcome
    from ironcurtain.operations.model import EscalationView

ARGUMENTS_SHOWN = 2000
"""Most characters of one argument that are shown; the digest covers all of it."""


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

    where = home()
    found = run(lambda reactor: Owners(reactor, where).escalations(everything))
    if json_output:
        print_json(found)
    elif not found:
        click.echo("Nothing waits for a decision.")
    else:
        click.echo("\n\n".join(describe(view, time.time()) for view in found))


@click.command()
@click.argument("number", type=int)
@click.option("--digest", help="Approve only if the call's digest is this one, as 'escalations --json' shows it.")
def approve(number: int, digest: str | None) -> None:
    """
    Let the waiting call NUMBER happen: this call, once, exactly as it was shown.
    """
    from ironcurtain.escalation import Outcome

    _decide(number, Outcome.APPROVED, digest)


@click.command()
@click.argument("number", type=int)
def deny(number: int) -> None:
    """
    Refuse the waiting call NUMBER. The agent is told that a person said no.
    """
    from ironcurtain.escalation import Outcome

    _decide(number, Outcome.DENIED, None)


def describe(view: EscalationView, now: float) -> str:
    """:returns: an escalation in lines for people, safe for a terminal."""
    from ironcurtain.display import one_line

    state = f"{ago(view.expires_at - now)} left"
    if view.outcome:
        state = f"{view.outcome}{f' by {one_line(view.by, 64)}' if view.by else ''}"
    lines = [f"{view.number}  {one_line(view.server, 64)}.{one_line(view.tool, 64)}  ({state})"]
    lines += [f"   {one_line(name, 64)} = {_argument(value)}" for name, value in view.arguments.items()]
    lines.append(f"   why: {one_line(view.reason, 400)} [{one_line(view.rule, 64)}]")
    lines.append(f"   session {view.session}, {one_line(view.label, 80)}; digest {view.digest[:16]}")
    return "\n".join(lines)


def _argument(value: Any) -> str:
    from ironcurtain.display import json_line, one_line

    return one_line(value, ARGUMENTS_SHOWN) if isinstance(value, str) else json_line(value, ARGUMENTS_SHOWN)


def _decide(number: int, outcome: Outcome, digest: str | None) -> None:
    from ironcurtain.cli.run import run
    from ironcurtain.control.owners import Owners

    where = home()

    async def decide(reactor: object) -> EscalationView:
        client, view = await Owners(reactor, where).of_escalation(number)
        return await client.decide(number, outcome, digest or view.digest)

    view = run(decide)
    click.echo(f"{outcome.value.capitalize()}: {view.server}.{view.tool} in session {view.session}.")
