"""``ironcurtain watch``, and runs of watchers in this process."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import agents, watcher_names
from ironcurtain.cli.output import home, print_lines, settings
from ironcurtain.cli.paths import UserPath
from ironcurtain.cli.start import choose_agent
from ironcurtain.errors import Unavailable
from ironcurtain.home.user_paths import absolute_path

if TYPE_CHECKING:
    from ironcurtain.assembly import Application
    from ironcurtain.home.layout import Home
    from ironcurtain.operations.watcher_runs import WatcherRuns
    from ironcurtain.watchers.model import Watcher


@click.command()
@click.argument("instruction", required=False)
@click.option("--pattern", default="", help="A glob for a part of a line, such as OOM (default: every line).")
@click.option("--agent", shell_complete=agents, help="The agent (default: default_agent in config.toml, or builtin).")
@click.option("--workspace", type=UserPath(), help="The directory to work on (default: a new one for each run).")
@click.option(
    "--max-per-hour", type=click.IntRange(1, 60), default=6, show_default=True, help="Maximum number of runs."
)
@click.option(
    "--ask",
    type=click.Choice(("policy", "console")),
    default="policy",
    show_default=True,
    help="Who answers what the policy escalates: nobody, so that it is denied, or you at a console.",
)
@click.option("--watcher", metavar="NAME", shell_complete=watcher_names, help="A watcher of watchers.toml instead.")
def watch(
    instruction: str | None,
    pattern: str,
    agent: str | None,
    workspace: Path | None,
    max_per_hour: int,
    ask: str,
    watcher: str | None,
) -> None:
    """
    Run an agent with INSTRUCTION whenever lines of standard input match a pattern.

    \b
      tail -f app.log | ironcurtain watch --pattern OOM "Find out why"

    The lines are data for the agent, never instructions. Lines that come within two seconds of each other are given to
    it together; those that come while it works are taken for its own doing, and dropped. Answers go to standard output.
    The command ends with its input, or after three failures in a row, with status 1.
    """
    from ironcurtain.watchers.model import Ask, Kind, Watcher

    where = home()
    if watcher is not None:
        if instruction is not None or pattern or agent or workspace:
            raise click.UsageError("--watcher has its instruction, pattern, agent and workspace in watchers.toml")
        raise SystemExit(_follow(where, _of_file(where, watcher), keep=True))
    if instruction is None or not instruction.strip():
        raise click.UsageError("say what the agent is to do: INSTRUCTION is missing")
    chosen, _ = choose_agent(agent, settings(where).settings.default_agent)
    place = absolute_path(workspace) if workspace is not None else None
    raise SystemExit(
        _follow(
            where,
            Watcher(
                name="stdin",
                trigger=Kind.STDIN,
                instruction=instruction,
                pattern=pattern,
                agent=chosen,
                workspace=place,
                max_per_hour=max_per_hour,
                ask=Ask(ask),
            ),
            keep=False,
        )
    )


def _of_file(where: Home, name: str) -> Watcher:
    from ironcurtain.cli.watchers import find_watcher
    from ironcurtain.watchers.model import Kind

    found = find_watcher(where, name)
    if found.trigger is not Kind.STDIN:
        raise click.UsageError(f'watcher {name} has trigger = "{found.trigger}": this command is for "stdin"')
    return found


def _follow(where: Home, watcher: Watcher, keep: bool) -> int:
    """:param keep: whether the home remembers its runs."""
    from ironcurtain.cli.run import run
    from ironcurtain.files.locks import is_held
    from ironcurtain.watchers.record import Records

    if os.isatty(0):
        raise click.UsageError("standard input is a terminal: pipe a stream into this command")
    with tempfile.TemporaryDirectory(prefix="ironcurtain-") as own:
        records = Records(where.watcher_records if keep else Path(own, "records"))
        if is_held(records.turn(watcher.name)):
            raise Unavailable(f"another process follows watcher {watcher.name}: end it first")
        return run(lambda reactor: _read(reactor, where, watcher, records))


async def _read(reactor: Any, where: Home, watcher: Watcher, records: Any) -> int:
    from twisted.internet.defer import Deferred

    from ironcurtain.watchers.decision import Chains
    from ironcurtain.watchers.stdin_trigger import StdinTrigger
    from ironcurtain.watchers.watching import Surroundings, Watching

    ended: Deferred[None] = Deferred()
    trigger = StdinTrigger(watcher, reactor, ended)
    application, runs = await _started(reactor, where)

    def say(sentence: str) -> None:
        print_lines(f"ironcurtain: {sentence}", err=True)
        if records.read(watcher.name).paused and not ended.called:
            ended.callback(None)

    around = Surroundings(lambda _: trigger, records, Chains(), reactor, time.time, runs, say)
    watching = Watching(watcher, around)
    try:
        watching.start()
        await ended
        await watching.finish()
    finally:
        await watching.stop()
        await application.stop("the command ends")
    record = records.read(watcher.name)
    return int(bool(record.failures or record.trouble))


async def _started(reactor: Any, where: Home) -> tuple[Application, WatcherRuns]:
    from ironcurtain.assembly import Application
    from ironcurtain.operations.watcher_runs import WatcherRuns
    from ironcurtain.session.model import Reply
    from ironcurtain.text.display import paragraphs

    def answered(watcher: Watcher, session: int, reply: Reply) -> None:
        print_lines(paragraphs(reply.text) if sys.stdout.isatty() else reply.text)

    application = Application.alone(reactor, where, os.environ)
    await application.start()
    return application, WatcherRuns(application.operations, reactor, answered)


def test_run(where: Home, watcher: Watcher) -> int:
    """
    Run a watcher once.

    :returns: the exit status.
    """
    from ironcurtain.cli.run import run
    from ironcurtain.fleet.watcher_tasks import WatcherTasks
    from ironcurtain.text.display import paragraphs
    from ironcurtain.watchers.decision import Batch
    from ironcurtain.watchers.message import message
    from ironcurtain.watchers.model import SHELL, Event
    from ironcurtain.watchers.record import Records, Run

    batch = Batch((Event({"test": "somebody asked for a test run"}),), 0, (watcher.name,))
    print_lines(paragraphs(message(watcher.instruction, batch, "MARK")), err=True)
    if watcher.agent == SHELL:
        print_lines("The shell asks you at its prompt before it runs this: there is nothing to run here.", err=True)
        return 0
    records = Records(where.watcher_records)

    async def once(reactor: Any) -> int:
        application, runs = await _started(reactor, where)
        try:
            await marked(WatcherTasks(where, runs, reactor, time.time))
        finally:
            await application.stop("the command ends")
        return 0

    async def marked(runs: WatcherTasks) -> None:
        with records.change(watcher.name) as record:  # what it changes is not to set it off in the daemon
            if record.running is not None:
                raise Unavailable(f"watcher {watcher.name} runs already, in session {record.running.session}")
            record.running = Run(at=time.time())
        try:
            await runs(watcher, batch, lambda number: None)
        finally:
            with records.change(watcher.name) as record:
                record.running, record.ended = None, time.time()

    return run(once)
