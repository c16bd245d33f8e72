"""What the agent of a shell says, as text for people."""

from __future__ import annotations

import click

from ironcurtain.cli.output import print_lines
from ironcurtain.policy.reversal import undo_words
from ironcurtain.shell.messages import (
    ApprovalRequested,
    InstructionDone,
    Message,
    ModelText,
    Notice,
    PlanProposed,
    StepCompleted,
    StepOutput,
    StepStarted,
)
from ironcurtain.text.display import one_line, paragraphs
from ironcurtain.view.arguments import diff_lines

DIFF_ROWS = 40
"""Most rows of how a step changes a file."""


def print_text(message: Message, asked_here: bool) -> None:
    """
    :param asked_here: whether questions are asked at the terminal, too.
    """
    match message:
        case ModelText(text=text):
            click.echo(paragraphs(text), nl=False)
        case PlanProposed(steps=steps):
            click.echo()
            for step in steps:
                click.echo(f"  {step.number}. {one_line(step.command)}")
                for line in diff_lines(step.diff, DIFF_ROWS, indent="     "):
                    click.echo("".join(span.text for span in line))
        case ApprovalRequested(number=number, step=step) if not asked_here:
            how = f"ironcurtain approve {number}, or ironcurtain deny {number}"
            click.echo(f"Step {step.number} waits, {undo_words(step.undo)}: {how}", err=True)
        case StepStarted(command=command):
            click.echo(f"$ {one_line(command)}")
        case StepOutput(text=text):
            click.echo(paragraphs(text), nl=False)
        case StepCompleted(outcome=outcome, exit_code=code, reason=reason):
            status = f" (exit status {code})" if code else ""
            click.echo(f"[{outcome}{status}{f': {one_line(reason)}' if reason else ''}]", err=True)
        case Notice(text=text):
            click.echo(one_line(text), err=True)
        case InstructionDone(error=error):
            print_lines(f"ironcurtain: {one_line(error)}" if error else "", err=bool(error))
