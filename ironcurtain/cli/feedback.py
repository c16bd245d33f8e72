"""``ironcurtain feedback``."""

from __future__ import annotations

import os

import click

from ironcurtain.cli.traces import kept_traces
from ironcurtain.home.layout import find_home


@click.command()
@click.argument("rating", type=click.Choice(["good", "bad"]))
@click.argument("note", required=False, default="")
@click.option("--id", "id_", metavar="ID", default="", help="Of a span or trace (default: the last instruction).")
def feedback(rating: str, note: str, id_: str) -> None:
    """
    Say what you think of what the shell's agent did.

    It is kept with the trace of the instruction, on this machine. NOTE is kept only where telemetry.anonymize is
    false; secrets are taken out of it.
    """
    from ironcurtain.secrets.redaction import Redactor
    from ironcurtain.text.display import one_line
    from ironcurtain.traces.kept import find_instruction, with_feedback
    from ironcurtain.traces.span import TEXT_LIMIT, Span

    sink, anonymize = kept_traces(find_home(os.environ, os.geteuid()))
    chosen: list[Span] = []
    words = rating if anonymize or not note else f"{rating}: {Redactor().text(note)[:TEXT_LIMIT]}"

    def changed(lines: bytes) -> bytes:
        chosen.append(find_instruction(lines, id_))
        return with_feedback(lines, chosen[0], words)

    sink.keep(changed)
    if not chosen:
        find_instruction(b"", id_)
    about = one_line(chosen[0].instruction)
    click.echo(f"{rating}: {about} (span {chosen[0].span_id}, trace {chosen[0].trace_id})")
    if note and anonymize:
        click.echo("the note is not kept: telemetry.anonymize is true", err=True)
