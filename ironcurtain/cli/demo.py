"""``ironcurtain demo``."""

from __future__ import annotations

import os
import shlex
import tempfile
from importlib.resources import files
from pathlib import Path

import click

from ironcurtain.cli.output import print_text
from ironcurtain.process.own_programs import is_on_path, own_program

GREETING = 'print("Helo, world")\n'
NAMES = "Ada\nGrace\n"

INTRODUCTION = """\
This plays a whole session. Only the model is scripted; everything else is real: its code runs in the interpreter, \
the tools are an MCP server behind the policy, and every step is recorded. All of it lies in
{place}

What you will see:
  1  It reads the project in its workspace. The policy allows that without asking.
  2  It corrects a file there. That is allowed, too.
  3  It reads a file outside the workspace. The policy asks you, and the call waits for your answer: \
type /approve 1 or /deny 1.
  4  It tries to change the policy. That is denied; no rule and no approval can allow it.
"""

NEXT = """
The file in the workspace now says:  {greeting}
See the record yourself:
  IRONCURTAIN_HOME={home} \\
    {program} audit show

With a real model, on a project of yours:
  export ANTHROPIC_API_KEY=...
  {program} start --workspace path/to/project "Explain what this project does"
What is missing on this machine, if anything:
  {program} doctor"""


@click.command()
@click.option("--yes/--no", "answer", default=None, help="Answer the question, for scripts; without it, you are asked.")
def demo(answer: bool | None) -> None:
    """
    Run an example session: no Docker and no API key needed.

    A scripted model works on a small project, through real tools, under the real policy; you answer one question.
    Its files are in a new directory below the temporary directory, which is kept for you to inspect.
    """
    from ironcurtain.audit.chain import read_record, verify
    from ironcurtain.audit.view import render
    from ironcurtain.cli.play import Play
    from ironcurtain.home.layout import find_home
    from ironcurtain.session.model import SessionRequest

    place = Path(tempfile.mkdtemp(prefix="ironcurtain-demo-"))
    project = place / "project"
    project.mkdir()
    (project / "greet.py").write_text(GREETING)
    (place / "names.txt").write_text(NAMES)
    environ = {**os.environ, "HOME": str(place), "IRONCURTAIN_HOME": str(place / ".ironcurtain")}
    where = find_home(environ, os.geteuid())
    print_text(INTRODUCTION.format(place=place), err=True)
    script = str(files("ironcurtain.cli") / "data" / "demo.toml")
    task = "Fix the greeting, then greet the people in ~/names.txt."
    request = SessionRequest("builtin", task, project, {"backend": f"scripted:{script}"})
    status = Play(where, request, environ, answer).run()
    if status:
        raise SystemExit(status)
    audit = next(where.sessions.glob("*/audit.jsonl"))
    print_text("\nThe record of all this, as 'ironcurtain audit show' prints it:\n", err=True)
    with audit.open("rb") as lines:
        for line in lines:
            if (record := read_record(line.rstrip(b"\n"))) and record["kind"] in ("call", "decision", "outcome"):
                print_text(render(record), err=True)
    with audit.open("rb") as lines:
        report = verify(lines)
    state = "intact" if report.intact else "NOT intact"
    click.echo(f"\n{report.records} records, each chained to the one before: {state}.", err=True)
    greeting = (project / "greet.py").read_text().strip()
    said = NEXT.format(greeting=greeting, home=shlex.quote(str(where.path)), program=shlex.quote(_program()))
    click.echo(said, err=True)  # commands stay whole
    if not report.intact:
        raise SystemExit(1)


def _program() -> str:
    """:returns: the command that runs this program from this directory."""
    own = own_program("ironcurtain")
    return "ironcurtain" if own is None or is_on_path("ironcurtain") else os.path.relpath(own)
