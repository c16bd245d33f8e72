"""``ironcurtain escalations``, ``approve`` and ``deny``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.completion import running_sessions, waiting
from ironcurtain.cli.numbers import NUMBER
from ironcurtain.cli.output import as_json, fits_screen, home, print_json, print_lines
from ironcurtain.cli.paths import use_host_programs
from ironcurtain.home.host_numbers import read_number

if TYPE_CHECKING:
    from ironcurtain.escalation import Outcome


@click.command()
@click.argument("what", required=False, metavar="[show")
@click.argument("number", required=False, type=NUMBER, metavar="N]", shell_complete=waiting)
@click.option("--all", "everything", is_flag=True, help="Include decided ones.")
@as_json
def escalations(what: str | None, number: int | None, everything: bool, json_output: bool) -> None:
    """
    List the calls that wait for a decision, with their arguments; or show escalation N completely.

    Answer with 'ironcurtain approve N' or 'ironcurtain deny N'. What is too long for the list says so: look at it with
    'ironcurtain escalations show N' before you approve it. Where it is longer than the terminal this is a pager, and
    its last line says how to approve exactly what was shown. Forms of MCP servers wait in the same list: fill one in
    with 'ironcurtain answer N'.
    """
    if what is None:
        _list(everything, json_output)
    elif what != "show" or number is None or everything:
        raise click.UsageError("say which one: escalations show N")
    elif text := _show(number, json_output):
        use_host_programs()
        click.echo_via_pager(f"{text}\n")


def _list(everything: bool, json_output: bool) -> None:
    from ironcurtain.cli.fleet import say_what_lists_lack
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.view.escalations import listing

    owners = BlockingOwners(home())
    found = result(owners.escalations(everything))
    say_what_lists_lack(home(), owners.lacking())
    if json_output:
        print_json(found)  # people do not read JSON, so it does not count as shown
        return
    listed = listing(found, time.time())
    click.echo("\n".join(listed.lines or ["No call waits for a decision."]))
    result(owners.shown(listed.whole))


def _show(number: int, json_output: bool) -> str:
    """:returns: what is for a pager. Only its reader knows whether it was read to its end, where the digest stands."""
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.view.escalations import how_to_approve, whole_lines

    owners = BlockingOwners(home())
    _, view = result(owners.of_escalation(number))
    if json_output:
        print_json(view)
        return ""
    lines = [*whole_lines(view, time.time()), *([] if view.outcome else [how_to_approve(view)])]
    if not fits_screen(lines):
        return "\n".join(lines)
    click.echo("\n".join(lines))
    result(owners.shown([] if view.outcome else [view]))
    return ""


@click.command()
@click.argument("number", type=NUMBER, shell_complete=waiting)
@click.option("--digest", help="Approve the call that has this digest; 'escalations show N' ends with it.")
@click.option("--keep", is_flag=True, help="Stop asking about such calls in this session; 'escalations' says which.")
def approve(number: int, digest: str | None, keep: bool) -> None:
    """
    Approve the waiting call NUMBER, once, exactly as it was shown.

    Without a digest only a call can be approved that was shown to you whole: look at it with 'ironcurtain escalations',
    or 'ironcurtain escalations show NUMBER'. Where equal calls wait for the decision, as many are let through as were
    shown.

    With --keep the approval stands until the session ends, for the calls that 'ironcurtain escalations' names with this
    one. 'ironcurtain permissions' lists what stands, 'ironcurtain revoke' ends it.
    """
    from ironcurtain.escalation import Outcome

    _decide(number, Outcome.APPROVED, digest, keep)


@click.command()
@click.argument("number", metavar="NUMBER|all", shell_complete=waiting)
@click.option(
    "--session", default="", shell_complete=running_sessions, help="With 'all': only the calls of this session."
)
def deny(number: str, session: str) -> None:
    """
    Deny the waiting call NUMBER, or all. The agent gets the answer that a person refused the call.

    To end an agent that keeps asking: ironcurtain stop SESSION
    """
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.errors import Unavailable
    from ironcurtain.escalation import Outcome
    from ironcurtain.view.escalations import denied_all

    if number == "all":
        owners = BlockingOwners(home())
        print_lines(denied_all(result(owners.deny_all(session))))
        if lacking := owners.lacking():
            raise Unavailable(" ".join(lacking))
    elif session or (one := read_number(number)) is None:
        raise click.UsageError("give one of: deny NUMBER, deny all, or deny all --session S")
    else:
        _decide(one, Outcome.DENIED, None, False)


def _decide(number: int, outcome: Outcome, digest: str | None, keep: bool) -> None:
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.view.escalations import decided

    client, _ = result(BlockingOwners(home()).of_escalation(number))
    print_lines(decided(result(client.decide(number, outcome, digest, keep))))
