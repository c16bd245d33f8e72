"""``ironcurtain replay``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.errors import NotFound, UsageError
from ironcurtain.session.elsewhere import kept_directory
from ironcurtain.terminal.recording import Cast, NoRecording, read_cast
from ironcurtain.terminal.replay import read_time, show_time
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted


class Time(click.ParamType[float]):
    """A position in a recording."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """:returns: seconds."""
        try:
            return value if isinstance(value, float) else read_time(value)
        except UsageError as e:
            self.fail(str(e), param, ctx)


@click.command()
@click.argument("recording", metavar="SESSION|FILE", default="last", shell_complete=all_sessions)
@click.option(
    "--speed", type=click.FloatRange(0.01, 1000), metavar="FACTOR", default=1.0, help="Speed; 2 is twice as fast."
)
@click.option("--idle-limit", type=click.FloatRange(0), metavar="SECONDS", help="Maximum length of a pause in seconds.")
@click.option("--at", type=Time(), metavar="TIME", default=0.0, help="Position to begin at: 90, 1:30 or 1:02:03.")
@click.option("--markers", is_flag=True, help="List the markers with their times, such as tool calls; do not play.")
@as_json
def replay(recording: str, speed: float, idle_limit: float | None, at: float, markers: bool, json_output: bool) -> None:
    """
    Play the recording of a session's terminal.

    SESSION is a number, an id, or 'last'. A name with a slash, or ending in .cast, is a FILE (asciicast v2 or v3).

    \b
    Keys: space         pause, or resume
          left, right   back or forward 5 seconds
          .             pause, and show the next change
          [ and ]       to the previous or next marker
          q             end

    Only visible output is played: your clipboard, window title and keyboard settings are not changed. If standard input
    or output is not a terminal, the text is printed at once.
    """
    if json_output and not markers:
        raise click.UsageError("--json is for --markers")
    path = recording_path(recording)
    cast = read(path)
    if markers:
        show_markers(cast, json_output)
        return
    status = 0
    if os.isatty(0) and os.isatty(1):
        status = play(cast, speed, idle_limit, at)
    else:
        print_text(cast, at)
    if cast.torn:
        print_lines(
            "The recording ends in the middle of a line: it is still being written, or was interrupted.", err=True
        )
    if cast.damaged:
        print_lines(f"Damaged in the recording, and ignored: {counted(cast.damaged, 'line')}.", err=True)
    raise SystemExit(status)


def recording_path(name: str) -> Path:
    """
    :param name: a file, or a session as commands take it.
    :raises NotFound: there is none.
    """
    if "/" in name or name.endswith(".cast"):
        return Path(name)
    path = kept_directory(home(), name).recording
    if not path.exists():
        raise NotFound(
            f"the session ({name}) has no recording: it had no terminal, or [terminal] record was false when it started"
        )
    return path


def read(path: Path) -> Cast:
    """:raises NoRecording: the file is not a recording."""
    try:
        return read_cast(path.read_bytes())
    except NoRecording as e:
        raise NoRecording(f"{path} {e}") from None


def show_markers(cast: Cast, json_output: bool) -> None:
    """Print the markers."""
    if json_output:
        size = {"columns": cast.size[0], "rows": cast.size[1]}
        print_json(
            {**size, "seconds": cast.seconds, "markers": [{"time": m.time, "label": m.marker} for m in cast.markers]}
        )
        return
    if not cast.markers:
        click.echo(f"No markers in {show_time(cast.seconds)}.")
        return
    print_table(("TIME", "MARKER"), [(show_time(marker.time), one_line(marker.marker)) for marker in cast.markers])


def print_text(cast: Cast, at: float) -> None:
    """Print the text of the recording from a position on."""
    from ironcurtain.terminal.sequences import Appearance, plain

    harmless = Appearance(*cast.size)
    text = "".join(harmless.feed(event.output) for event in cast.events if event.time >= at)
    click.echo(plain(text.encode("utf-8", "replace")), nl=False)


def play(cast: Cast, speed: float, idle_limit: float | None, at: float) -> int:
    """:returns: the exit status."""
    from ironcurtain.cli.run import run
    from ironcurtain.terminal.local import LocalTerminal
    from ironcurtain.terminal.raw import RawMode
    from ironcurtain.terminal.replay import Replay, ReplayViewer

    sizes = [cast.size, *(event.size for event in cast.events if event.size is not None)]
    columns, rows = (max(sides) for sides in zip(*sizes, strict=True))

    async def shown(reactor: Any) -> int:
        raw = RawMode()
        terminal = LocalTerminal(reactor, raw)
        replay = Replay(cast, speed=speed, idle_limit=idle_limit)
        viewer = ReplayViewer(replay, terminal, reactor, rows, cast.seconds)
        terminal.begin(viewer)
        try:
            here = terminal.size()
            if here[0] < columns or here[1] < rows:
                viewer.ask(
                    f"Recorded at {columns}x{rows}, and this terminal is {here[0]}x{here[1]}: make it larger, or it "
                    "will look wrong.\r\nPress a key to begin, q to leave it.",
                    at,
                )
            else:
                viewer.begin(at)
            status = await terminal.closed
            return 1 if status is None else status
        finally:
            viewer.lost()
            raw.undo()

    return run(shown)
