"""``ironcurtain tools``."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.output import as_json, fits_screen, home, print_json, print_lines, print_table
from ironcurtain.cli.paths import use_host_programs
from ironcurtain.cli.questions import confirmed
from ironcurtain.text.display import ago, one_line

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.pins import Pin, PinFiles


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def tools(context: click.Context, json_output: bool) -> None:
    """
    List the pinned definitions of MCP tools, and the new definitions that wait to be accepted.

    The first definition of a tool that a server sends is pinned for all sessions of this home. If the server later
    changes it, the tool is withheld until you accept the new definition: view it with
    'ironcurtain tools show SERVER', and accept it with 'ironcurtain tools accept SERVER'.
    """
    if context.invoked_subcommand is not None:
        return
    files = _files()
    pins = {server: files.of(server).read() for server in files.servers()}
    if json_output:
        print_json({server: {name: _as_json(pin) for name, pin in sorted(p.items())} for server, p in pins.items()})
    elif not any(pins.values()):
        print_lines("No definitions are pinned yet.")
    else:
        rows = [(s, one_line(name, 64), _state(pin)) for s, p in pins.items() for name, pin in sorted(p.items())]
        print_table(("SERVER", "TOOL", "DEFINITION"), rows)


@tools.command()
@click.argument("server")
@click.argument("tool", required=False)
@as_json
def show(server: str, tool: str | None, json_output: bool) -> None:
    """
    Show the changed definitions of SERVER, or of its TOOL.

    The pinned definition (-) and the new one (+) are complete. The last line is the command that accepts exactly what
    was shown. An unchanged TOOL is shown as it is pinned.
    """
    from ironcurtain.errors import NotFound
    from ironcurtain.mcp_proxy.pins import waiting

    pins = _files().of(server).read()
    if tool is not None and tool not in pins:
        raise NotFound(f"no tool {one_line(tool, 64)} of {server} has been seen")
    chosen = {tool: pins[tool]} if tool is not None else waiting(server, pins)
    if json_output:
        print_json(
            {name: {**_as_json(pin), "pinned": pin.definition, "new": pin.waiting} for name, pin in chosen.items()}
        )
        return
    lines = list(_comparisons(server, chosen, [] if tool is None else [tool]))
    if fits_screen(lines):
        click.echo("\n".join(lines))
    else:
        use_host_programs()
        click.echo_via_pager("".join(f"{line}\n" for line in lines))


@tools.command()
@click.argument("server")
@click.argument("tool", nargs=-1)
@click.option("--digest", help="Accept only definitions with this digest, which 'tools show' prints.")
def accept(server: str, tool: Sequence[str], digest: str | None) -> None:
    """
    Accept the new definitions of SERVER, or only those of its TOOLs.

    Without a digest, the command shows them and asks. Running sessions use them within a second. The audit log of each
    session that uses them records it.
    """
    from ironcurtain.mcp_proxy.pins import digest_of_waiting, waiting
    from ironcurtain.operations.principal import owner

    file = _files().of(server)
    if digest is None:
        chosen = waiting(server, file.read(), tool)
        lines = list(_comparisons(server, chosen, tool))
        if not sys.stdin.isatty() or not fits_screen(lines):
            look = shlex.join(["ironcurtain", "tools", "show", server, *tool[:1]])
            raise click.UsageError(f"view the definitions first: {look} prints the digest with which to accept them")
        click.echo("\n".join(lines))
        if not confirmed("Accept?"):
            print_lines("Nothing was accepted.", err=True)
            raise SystemExit(1)
        digest = digest_of_waiting(chosen)
    new = file.accept(tool, digest, owner().name)
    print_lines(f"Accepted: {', '.join(one_line(name, 64) for name in new)} of {server}.")


def _files() -> PinFiles:
    from ironcurtain.mcp_proxy.pins import PinFiles

    return PinFiles(home().tool_definitions, time.time)


def _comparisons(server: str, pins: Mapping[str, Pin], tools: Sequence[str]) -> Iterator[str]:
    from ironcurtain.mcp_proxy.pins import comparison, digest_of_waiting

    for name, pin in pins.items():
        yield from comparison(name, pin)
        yield ""
    if any(pin.waiting is not None for pin in pins.values()):
        command = ["ironcurtain", "tools", "accept", server, *tools, "--digest", digest_of_waiting(pins)]
        yield f"to accept exactly this: {one_line(shlex.join(command))}"


def _state(pin: Pin) -> str:
    if pin.waiting is not None:
        return (
            "WITHHELD: a new definition waits to be accepted"
            if pin.definition
            else "WITHHELD: it has hidden text in it"
        )
    when = ago(time.time() - pin.since)
    return f"accepted by {one_line(pin.by, 64)} {when} ago" if pin.by else f"as seen first, {when} ago"


def _as_json(pin: Pin) -> dict[str, object]:
    from ironcurtain.audit.chain import timestamp
    from ironcurtain.mcp_proxy.pins import digest

    return {
        "pinnedDigest": None if pin.definition is None else digest(pin.definition),
        "newDigest": None if pin.waiting is None else digest(pin.waiting),
        "since": timestamp(pin.since),
        "acceptedBy": pin.by or None,
    }
