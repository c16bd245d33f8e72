"""
Translate between the agent's names for the workspace and the host's, in arguments, results and URIs.

The agent sees one directory, ``/workspace``; the host knows it by its real path. Neither name says anything about
permission: the policy judges what :meth:`PathMap.to_host` gives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

AGENT_WORKSPACE = "/workspace"
"""Where every agent finds its workspace."""

_ENDS_NAME = r"(?:(?=\.(?:\s|\Z))|(?![^\s/\"'`<>|:;,)\]}\\*?&#]))"
"""
A path ends before one of these, or before the full stop of a sentence: so ``/home/me/work`` is not found in
``/home/me/work-old``.
"""


@dataclass(frozen=True, slots=True)
class PathMap:
    """
    One session's workspace under its two names.

    :param host: absolute real path on the host, without a slash at its end.
    :param agent: absolute path that the agent uses.
    """

    host: str
    agent: str = AGENT_WORKSPACE
    _host_in_text: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _host_in_uri: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text, uri = (rf"(?<![\w.-]){re.escape(form)}{_ENDS_NAME}" for form in (self.host, f"file://{quote(self.host)}"))
        object.__setattr__(self, "_host_in_text", re.compile(text))
        object.__setattr__(self, "_host_in_uri", re.compile(uri))

    def to_host(self, path: str) -> str:
        """
        :param path: as the agent wrote it.
        :returns: the host's name. Relative paths count from the workspace; other absolute ones and ``~`` stay.
        """
        if path == self.agent:
            return self.host
        if path.startswith(f"{self.agent}/"):
            return self.host + path[len(self.agent) :]
        if path.startswith(("/", "~")):
            return path
        return f"{self.host}/{path}" if path else self.host

    def to_agent(self, path: str) -> str:
        """:returns: the agent's name for a host path; paths outside the workspace stay."""
        if path == self.host:
            return self.agent
        return self.agent + path[len(self.host) :] if path.startswith(f"{self.host}/") else path

    def to_agent_text(self, text: str) -> str:
        """:returns: the text with the host's name of the workspace replaced, alone or at the start of a path."""
        text = self._host_in_uri.sub(lambda _: f"file://{quote(self.agent)}", text)
        return self._host_in_text.sub(lambda _: self.agent, text)


def file_path(uri: str) -> str | None:
    """
    The path in a ``file:`` URI (RFC 8089).

    :returns: the decoded absolute path, or ``None`` for other schemes, other hosts, and URIs without a path.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "file":
        return None
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            return None
        rest = f"/{tail}"
    path = unquote(re.split("[?#]", rest, maxsplit=1)[0])
    return path if path.startswith("/") else None
