"""``ironcurtain traces``."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from pathlib import Path

import click

from ironcurtain.cli.paths import UserPath
from ironcurtain.home.layout import Home, find_home
from ironcurtain.services.line_sinks import FileSink
from ironcurtain.text.quantities import counted


def kept_traces(home: Home) -> tuple[FileSink, bool]:
    """
    :returns: the file of the traces of this home, and whether texts are left out of it.
    :raises UsageError: they go elsewhere, or there are none.
    """
    from ironcurtain.errors import UsageError
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.home.settings import load
    from ironcurtain.traces.context import join_trace, with_sink
    from ironcurtain.traces.sinks import make_sink

    telemetry = load(str(home.config), read_configuration(home.config), os.environ).settings.telemetry
    choice = with_sink(join_trace(os.environ, secrets.token_hex), telemetry, str(home.traces)).sink
    sink = make_sink(choice, lambda line: None) if choice is not None else None
    if not isinstance(sink, FileSink):
        where = "there are no traces" if choice is None else f"traces go to {choice.kind}, which keeps them"
        raise UsageError(f'{where}: this needs telemetry.sink = "file" in config.toml')
    return sink, telemetry.anonymize


@click.group()
def traces() -> None:
    """What the agents of shells did, as traces."""


@traces.command()
@click.argument("file", type=UserPath(), metavar="FILE")
@click.option("--yes", metavar="DIGEST", default="", help="Write what a preview with this digest has shown.")
def export(file: Path, yes: str) -> None:
    """
    Write a copy of all traces to FILE, to give it away.

    Prints exactly what would be written, and asks. Instructions, commands, notes and names of machines are replaced by
    hashes, whatever the settings say. Nothing is sent anywhere, and nothing is written without a yes: at the terminal,
    or as --yes with the digest of a preview.
    """
    from ironcurtain.errors import NotAllowed, NotFound, StaleDecision, UsageError
    from ironcurtain.text.display import paragraphs
    from ironcurtain.traces.kept import for_others

    sink, _ = kept_traces(find_home(os.environ, os.geteuid()))
    found: list[bytes] = []

    def read(lines: bytes) -> bytes:
        found.append(for_others(lines))
        return lines

    sink.keep(read)
    data = b"".join(found)
    if not data:
        raise NotFound("there are no traces to export")
    digest = hashlib.sha256(data).hexdigest()[:16]
    if yes and yes != digest:
        raise StaleDecision(f"the traces are others than those with the digest {yes}: look at them again")
    if not yes:
        click.echo(paragraphs(data.decode()), nl=False)
        click.echo(f"{counted(data.count(bytes([10])), 'span')}, {len(data)} bytes, digest {digest}", err=True)
        if not sys.stdin.isatty():
            raise NotAllowed(f"nobody to ask: nothing was written. To write exactly this: --yes {digest}")
        from ironcurtain.cli.questions import confirmed

        if not confirmed(f"Write this to {file}?", default=False, err=True):
            raise NotAllowed("nothing was written")
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as e:
        raise UsageError(f"{file} cannot be made: {e.strerror}") from None
    with os.fdopen(descriptor, "wb") as writing:
        writing.write(data)
    click.echo(f"{file}: {len(data)} bytes", err=True)
