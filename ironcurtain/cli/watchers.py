"""``ironcurtain watchers``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import watcher_names
from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table, settings
from ironcurtain.errors import IronCurtainError, NotFound

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.watchers.model import Watcher
    from ironcurtain.watchers.record import Record, Run

_named = click.argument("name", shell_complete=watcher_names)


@click.group()
def watchers() -> None:
    """
    Watch for something, and let an agent act on it, under the policy.

    The watchers stand in watchers.toml in the home, which only you can write. The daemon follows them; those with
    agent = "shell" are followed by 'ironcurtain shell', which asks you at its next prompt.
    """


@watchers.command("list")
@as_json
def list_watchers(json_output: bool) -> None:
    """List the watchers, and how their last runs ended."""
    where = home()
    rows = [_row(where, watcher) for watcher in _all(where)]
    if json_output:
        print_json(rows)
    elif not rows:
        print_lines(f"No watchers. They stand in {where.watchers}")
    else:
        print_table(
            ("NAME", "TRIGGER", "AGENT", "LAST RUN", "STATE"),
            [(row["name"], row["trigger"], row["agent"], row["last"] or "-", row["state"]) for row in rows],
        )


@watchers.command()
def check() -> None:
    """
    Check watchers.toml, and whether each watcher could watch here.

    Exit status: 0 if all could, 78 if the file is wrong, 69 if one could not watch.
    """
    where = home()
    found, able = _all(where), True
    for watcher in found:
        problem = problem_of(watcher, where)
        able = able and not problem
        print_lines(f"wrong  {watcher.name}: {problem}" if problem else f"ok     {watcher.name}: {_in_words(watcher)}")
    if not found:
        print_lines(f"No watchers. They stand in {where.watchers}")
    if not able:
        raise SystemExit(69)


@watchers.command()
@_named
def test(name: str) -> None:
    """
    Run the watcher NAME once now, as if something had set it off.

    What its agent is told goes to standard error, and the answer to standard output. The run counts neither as one of
    an hour nor as a failure.
    """
    from ironcurtain.cli.watch import test_run

    where = home()
    raise SystemExit(test_run(where, find_watcher(where, name)))


@watchers.command()
@_named
def pause(name: str) -> None:
    """Let nothing set the watcher NAME off any more. A run in progress goes on."""
    find_watcher(home(), name)
    records = _records(home())
    with records.change(name) as record:
        record.pause(time.time(), "by 'ironcurtain watchers pause'")
    print_lines(f"Watcher {name} is paused. 'ironcurtain watchers resume {name}' resumes it.")


@watchers.command()
@_named
def resume(name: str) -> None:
    """Let the watcher NAME be set off again. What happened meanwhile is not made up for."""
    find_watcher(home(), name)
    records = _records(home())
    with records.change(name) as record:
        was = record.paused
        record.resume()
    print_lines(f"Watcher {name} {'is resumed' if was else 'was not paused'}.")


def _all(where: Home) -> tuple[Watcher, ...]:
    from ironcurtain.operations.watchers import watchers_of

    return watchers_of(where, os.environ)


def find_watcher(where: Home, name: str) -> Watcher:
    """
    :returns: the watcher of this name.
    :raises NotFound: ``watchers.toml`` has none.
    """
    for watcher in (found := _all(where)):
        if watcher.name == name:
            return watcher
    known = ", ".join(watcher.name for watcher in found) or "there are none"
    raise NotFound(f"there is no watcher {name!r} in {where.watchers}: {known}")


def _records(where: Home) -> Any:
    from ironcurtain.watchers.record import Records

    return Records(where.watcher_records)


def _row(where: Home, watcher: Watcher) -> dict[str, Any]:
    record: Record = _records(where).read(watcher.name)
    last = record.last
    return {
        "name": watcher.name,
        "trigger": watcher.trigger.value,
        "agent": watcher.agent,
        "last": _last(record) if last is not None else "",
        "session": last.session if last is not None else None,
        "failures": record.failures,
        "paused": record.paused,
        "dropped": record.dropped,
        "missed": record.missed,
        "state": "; ".join(_states(where, watcher, record)),
    }


def _last(record: Record) -> str:
    assert record.last is not None
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.last.at))
    return f"{moment} {'failed' if record.last.error else 'done'}{_session(record.last)}"


def _session(run: Run) -> str:
    return f", session {run.session}" if run.session else ""  # else it was on another machine, or there is none


def _states(where: Home, watcher: Watcher, record: Record) -> Iterator[str]:
    from ironcurtain.files.locks import is_held
    from ironcurtain.text.display import one_line
    from ironcurtain.watchers.model import SHELL, Kind

    if record.paused:
        yield f"paused: {one_line(record.paused)}"
    elif record.running is not None:
        yield f"runs{_session(record.running)}"
    elif is_held(_records(where).turn(watcher.name)):
        yield "watches"
    elif watcher.trigger is Kind.STDIN:
        yield f"for: ironcurtain watch --watcher {watcher.name}"
    else:
        yield f"not followed: no {'shell' if watcher.agent == SHELL else 'daemon'} runs"
    if record.trouble:
        yield one_line(record.trouble)
    if record.last is not None and record.last.error:
        yield f"failed: {one_line(record.last.error)}"
    if record.missed:
        yield f"missed {record.missed}"
    if record.dropped:
        yield f"dropped {record.dropped}"


def problem_of(watcher: Watcher, where: Home) -> str:
    """:returns: why it could not watch here; empty if it could."""
    from ironcurtain.text.display import one_line
    from ironcurtain.watchers.file_trigger import unwatchable
    from ironcurtain.watchers.model import Kind
    from ironcurtain.watchers.triggers import own_places

    if watcher.path is not None and (problem := unwatchable(watcher.path, own_places(where))):
        return problem
    if watcher.workspace is not None and (problem := _workspace_problem(watcher.workspace, where)):
        return problem
    if watcher.trigger not in (Kind.SCREEN_CHANGE, Kind.AUDIO_EVENT):
        return ""
    from ironcurtain.watchers.desktop_triggers import missing

    return one_line(missing(watcher, os.environ))


def _workspace_problem(workspace: Path, where: Home) -> str:
    """:returns: why a session would not take a workspace; empty if it would."""
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.session.tool_files import ToolFiles
    from ironcurtain.session.tools import protected_paths
    from ironcurtain.session.workspace import usable_workspace
    from ironcurtain.text.display import one_line

    user_home, files = person_home(os.environ, os.geteuid()), ToolFiles.chosen(where, {})
    try:
        protected = protected_paths(where, user_home, files, settings(where).settings, workspace)
        usable_workspace(workspace, Path(user_home), where.path, protected)
    except IronCurtainError as e:
        return one_line(str(e))
    return ""


def _in_words(watcher: Watcher) -> str:
    from ironcurtain.text.display import one_line
    from ironcurtain.text.quantities import counted

    app = f" of {watcher.app}" if watcher.app else ""
    what = {
        "file_change": f"changes of {watcher.path}",
        "stdin": f"lines given to 'ironcurtain watch --watcher {watcher.name}'",
        "screen_change": f"what appears on the screen{app}",
        "audio_event": f"what is heard{app or ' by the microphone'}",
        "schedule": f"cron {watcher.cron}" if watcher.cron else f"every {watcher.every:g} s",
    }[watcher.trigger.value]
    pattern = f" that match {watcher.pattern!r}" if watcher.pattern else ""
    how = f"{watcher.agent}, at most {counted(watcher.max_per_hour, 'time')} an hour, asks {watcher.ask.value}"
    return one_line(f"{what}{pattern}: {how}")
