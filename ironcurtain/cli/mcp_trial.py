"""Start MCP servers as a session starts them, and see which tools they have."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ironcurtain.cli.mcp_candidates import NAME_LIMIT
from ironcurtain.cli.output import home, print_lines
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.mcp_proxy.pins import PinFile

AFTER_SECONDS = 5.0
"""Seconds after the longest time to start within which it is known whether a server has failed."""


ERROR_LIMIT = 600
"""Maximum number of characters that a failure has of the server's standard error: of its end."""

_TRACE = re.compile(
    r"\s+at |[\s|+]*+(?:File \"|(?:Exception Group )?Traceback \(|[\^~]+$|[-+]++(?: \d+ [-+]++)?$|$"
    r"|(?:During|The above) .*exception)"
)
"""The beginning of a line that only says where in a program an exception came from, as Python and Node print it."""

MAX_INDENT = sys.maxsize
"""How far in a line may be that follows no frame of a stack trace."""


class Trial(msgspec.Struct, frozen=True):
    """
    :param tools: the definitions of the server's tools, as agents see them, by name.
    :param failure: why it did not start; empty if it did.
    :param withheld: the tools that agents do not see until a person accepts their definitions.
    :param faults: sentences about what was wrong with what it sent, and mended or left out.
    """

    tools: Mapping[str, Mapping[str, Any]]
    failure: str = ""
    withheld: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def try_servers(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Trial]:
    """
    Start servers in their sandboxes, in an empty workspace, and end them again. New definitions of tools are pinned.

    :param entries: what stands in ``mcp-servers.json``, by name of server.
    """
    from twisted.internet.defer import CancelledError

    from ironcurtain.cli.run import run
    from ironcurtain.session.model import SessionRequest

    where = home()
    where.prepare()
    if entries and sys.stderr.isatty():  # what fetches a package is silent for a while
        names = ", ".join(one_line(name, NAME_LIMIT) for name in entries)
        print_lines(f"Starting {names} in a sandbox, to see what tools there are ...", err=True)
    with TemporaryDirectory(prefix="ironcurtain-") as directory:
        top = Path(directory)
        top.chmod(0o711)  # the account of the servers has to reach the workspace below it
        servers = top / "mcp-servers.json"
        servers.touch(0o600)
        servers.write_text(json.dumps({"mcpServers": entries}))
        options = {"servers": str(servers), "socket": str(top / "mcp.sock")}
        request = SessionRequest("mcp-proxy", "", None, options, top / "session")
        signals = list[int]()

        def signalled(number: int) -> bool:
            signals.append(number)
            return False

        async def main(reactor: Any) -> dict[str, Trial]:
            from ironcurtain.assembly import Application
            from ironcurtain.services.lifecycle import to_its_end

            application = Application.alone(reactor, where, os.environ)
            await application.start()
            try:
                session = await application.manager.create(request)
                if signals:  # a session that starts may finish that first
                    raise CancelledError
                return await _tried(session, list(entries))
            finally:
                await to_its_end(application.stop("the command ends"))

        try:
            found = run(main, signalled)
            return {name: _with_errors(name, found[name], request.directory, f"{servers}:1: ") for name in found}
        finally:
            _forget(where, top)


def _forget(where: Home, top: Path) -> None:
    from ironcurtain.session.elsewhere import elsewhere, forget
    from ironcurtain.session.removed import record_removal

    for session in list(elsewhere(where)):
        if Path(session.directory).is_relative_to(top):
            record_removal(where, session.id, time.time())
            forget(where, session.id)


def _with_errors(name: str, trial: Trial, directory: Path | None, place: str) -> Trial:
    """
    :param place: where an error stands, in a file that no person has seen: it is left out.
    :returns: a failure with the last lines of the server's standard error.
    """
    from ironcurtain.home.session_paths import SessionPaths

    if not trial.failure or directory is None:
        return trial
    failure, found = trial.failure.replace(place, ""), []
    with suppress(OSError):
        for line in SessionPaths(directory).log.read_text(errors="replace").splitlines():
            _, _, rest = line.partition(" ")
            found += [rest.removeprefix(f"{name}: ")] if rest.startswith(f"{name}: ") else []
    last = "; ".join(line.strip() for line in reasons(found) if line not in failure)
    return replace(trial, failure=f"{failure}: {last[-ERROR_LIMIT:]}" if last else failure)


def reasons(lines: Sequence[str]) -> list[str]:
    """:returns: those lines of a standard error that say why, without those of stack traces."""
    found, frame = [], MAX_INDENT
    for line in lines:
        rest = line.lstrip(" |")
        indent = len(line) - len(rest)
        if indent <= frame and _TRACE.match(line) is None:
            found.append(line)
        frame = indent if rest.startswith('File "') else MAX_INDENT  # what is further in quotes the program
    return found


async def _tried(session: Any, names: list[str]) -> dict[str, Trial]:
    from ironcurtain.mcp_proxy.downloads import DOWNLOAD_SECONDS
    from ironcurtain.mcp_proxy.server_fields import START_SECONDS

    gate = session.agent.gate
    await gate.settled(DOWNLOAD_SECONDS + START_SECONDS + AFTER_SECONDS)  # without a package each fails much earlier
    tools: dict[str, dict[str, Mapping[str, Any]]] = {name: {} for name in names}
    for tool in gate.tools():
        tools[tool.server][tool.name] = tool.definition
    down: Mapping[str, str] = session.info.servers_down
    starting = {name: "did not start: it is not ready yet" for name in gate.starting() if name not in down}
    held: dict[str, list[str]] = {name: [] for name in names}
    for tool in gate.withheld():
        held[tool.server].append(tool.name)
    why, faults = {**starting, **down}, session.info.server_faults
    return {name: Trial(tools[name], why.get(name, ""), tuple(held[name]), faults.get(name, ())) for name in names}


@contextmanager
def pins_kept_for(accepted: set[str], files: Mapping[str, PinFile]) -> Iterator[None]:
    """
    Forget the definitions that a trial pins, unless the person accepts the server.

    :param accepted: the names of accepted servers, once the block ends.
    :param files: the pins of the servers, by name.
    """
    new = [name for name, file in files.items() if not file.path.exists()]
    try:
        yield
    finally:
        for name in new:
            if name not in accepted:
                files[name].path.unlink(missing_ok=True)
