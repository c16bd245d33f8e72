"""The pinned definitions as one session uses them: of our own servers everything counts, of others what is pinned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ironcurtain.mcp_proxy.pin_files import PinFiles
from ironcurtain.mcp_proxy.pins import Pin


class SessionPins:
    """
    :param own: the servers that come with this program: their definitions are ours, and change with our releases.
    :param tell: takes a sentence for the person whose session it is.
    """

    def __init__(self, files: PinFiles, own: Collection[str], tell: Callable[[str], None]) -> None:
        self._files, self._own, self._tell = files, own, tell
        self._marks: dict[str, tuple[int, int]] = {}

    def see(self, server: str, definitions: Sequence[Mapping[str, Any]]) -> Mapping[str, Pin]:
        """
        :param definitions: what a server says now.
        :returns: what counts of each tool.
        :raises ConfigurationError: the file of the server is damaged.
        :raises Unavailable: it cannot be read or written.
        """
        if server in self._own:
            return {str(definition["name"]): Pin(dict(definition), 0.0) for definition in definitions}
        file = self._files.of(server)
        self._marks[server] = file.mark()  # before it is read: what is written meanwhile is read once more
        seen = file.see(definitions)
        if seen.new:
            first = f"{seen.new} tools are" if seen.new > 1 else "1 tool is"
            self._tell(f"MCP server {server}: {first} seen for the first time, and pinned as defined now")
        return seen.pins

    def changed(self, server: str) -> bool:
        """Whether something of a server was pinned or accepted since this session looked."""
        return server in self._marks and self._files.of(server).mark() != self._marks[server]
