"""``ironcurtain answer``: fill in the form of an MCP server."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import waiting
from ironcurtain.cli.numbers import NUMBER
from ironcurtain.cli.output import home, print_lines

if TYPE_CHECKING:
    from ironcurtain.escalation import Outcome
    from ironcurtain.escalation.forms import Form
    from ironcurtain.operations.model import EscalationView

JSON_LIMIT = 1024 * 1024
"""Maximum number of bytes read from standard input."""


@click.command()
@click.argument("number", type=NUMBER, shell_complete=waiting)
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--json", "text", metavar="OBJECT", help="The values as a JSON object; - reads it from standard input.")
@click.option("--decline", is_flag=True, help="Tell the server that you decline, as 'deny' does.")
@click.option("--cancel", is_flag=True, help="Tell the server that nobody answers.")
@click.option("--digest", help="Fill in the form that has this digest; 'escalations' shows it.")
def answer(
    number: int, values: tuple[str, ...], text: str | None, decline: bool, cancel: bool, digest: str | None
) -> None:
    """
    Fill in the form NUMBER, which an MCP server sent: field by field at a terminal, or with the values given here.

    A field with several choices may be named several times. Values given here count only if the form was shown to you
    whole: look at it with 'ironcurtain escalations'. The server gets exactly these values, and the agent does not see
    them. A form that asks for a secret never gets here, and no value that looks like one is sent.
    """
    if sum((bool(values), text is not None, decline, cancel)) > 1:
        raise click.UsageError("give one of: NAME=VALUE words, --json, --decline, --cancel")
    asks = not values and text is None and not decline and not cancel
    if asks and not sys.stdin.isatty():
        raise click.UsageError("without a terminal, give NAME=VALUE words, --json, --decline or --cancel")
    given = sys.stdin.buffer.read(JSON_LIMIT).decode(errors="replace") if text == "-" else text
    from ironcurtain.control.blocking import BlockingOwners, result
    from ironcurtain.escalation import Outcome
    from ironcurtain.view.escalations import decided

    client, view = result(BlockingOwners(home()).of_escalation(number))

    async def send() -> EscalationView | None:
        if decline:
            return await client.decide(number, Outcome.DENIED, digest)
        if cancel:
            return await client.answer(number, None, digest)
        form = _form(view)
        if not asks:
            return await client.answer(number, _given(form, values, given), digest)
        outcome, entered = _asked(view, form)
        if outcome is None:
            return None
        if outcome is Outcome.DENIED:
            return await client.decide(number, outcome, view.digest)
        return await client.answer(number, entered if outcome is Outcome.ANSWERED else None, view.digest)

    answered = result(send())
    print_lines("It waits on." if answered is None else decided(answered))


def _form(view: EscalationView) -> Form:
    from ironcurtain.errors import StaleDecision, UsageError

    if view.outcome:
        raise StaleDecision(f"too late: escalation {view.number} was {view.outcome}")
    if view.form is None:
        raise UsageError(f"{view.number} is a call and no form: approve or deny it")
    return view.form


def _given(form: Form, words: tuple[str, ...], text: str | None) -> dict[str, Any]:
    from ironcurtain.errors import UsageError
    from ironcurtain.escalation.forms import read_words
    from ironcurtain.jsonrpc import codec

    if text is None:
        return read_words(form, words)
    try:
        found = codec.decode(text.encode())
    except codec.InvalidMessage as e:
        raise UsageError(f"--json: {e.detail}") from None
    if not isinstance(found, dict):
        raise UsageError("--json wants an object with a value for each field")
    return found


def _asked(view: EscalationView, form: Form) -> tuple[Outcome | None, dict[str, Any]]:
    """
    :returns: what the person at the terminal decides, if anything, and the values.
    :raises click.Abort: Ctrl-C; the form waits on.
    """
    from ironcurtain.cli.questions import confirmed
    from ironcurtain.escalation import Outcome
    from ironcurtain.text.display import one_line
    from ironcurtain.view.escalations import whole_lines
    from ironcurtain.view.forms import HELP, FormDialogue

    print_lines("\n".join([*whole_lines(view, time.time()), *([HELP] if form.fields else [])]))
    dialogue = FormDialogue(view.number, view.digest, form)
    while not dialogue.complete:
        reply = dialogue.enter(click.prompt(dialogue.prompt, default="", show_default=False))
        if not isinstance(reply, list):
            return reply, {}
        print_lines("\n".join(f"   {line}" for line in reply[:-1]))
    what = "Send this to" if form.fields else "Agree to what is asked by"
    asked = "Did you open it?" if form.url else f"{what} the server {one_line(view.server)}?"
    return (Outcome.ANSWERED if confirmed(asked) else None), dialogue.values
