"""Sessions in words: what the list of sessions and who comes back to one should know. Not escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ironcurtain.sandbox.spec import Kind
from ironcurtain.session.model import SessionInfo


def outside_sandboxes(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each session with MCP servers that run outside any sandbox."""
    for info in found:
        if info.unsandboxed:
            yield f"Session {info.number}: outside any sandbox run the MCP servers {', '.join(info.unsandboxed)}."


def weaker_sandboxes(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each session whose sandboxes hold less than others."""
    for info in found:
        if info.sandbox == Kind.LANDLOCK.value:
            yield f"Session {info.number}: what sandboxes of Landlock do not hold says: ironcurtain doctor."


def paid_by(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each session whose models an account pays for."""
    for info in found:
        if info.payers:
            yield f"Session {info.number} is paid by {'; '.join(info.payers)}."


def servers_down(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each MCP server that is down in one of the sessions."""
    for info in found:
        for server, why in info.servers_down.items():
            yield f"Session {info.number}: the MCP server {server} {why}."


def server_faults(found: Iterable[SessionInfo]) -> Iterator[str]:
    """:returns: a line for each thing that an MCP server sent and that breaks the protocol."""
    for info in found:
        for server, faults in info.server_faults.items():
            yield from (f"Session {info.number}: the MCP server {server}: {fault}." for fault in faults)


def how_to_resume(info: SessionInfo) -> str:
    """:returns: a sentence on how to resume a session whose process died; empty if it cannot be resumed."""
    command = {"loop": "loop", "mcp-proxy": ""}.get(info.kind, "start")
    return f"To resume session {info.number}: ironcurtain {command} --resume {info.number}" if command else ""
