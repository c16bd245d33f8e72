"""
Translate between the agent's path of the workspace and the host's, in arguments, results and URIs.

On the host the workspace has its real path. Agents see it as ``/workspace``, or in its own path, with ``/workspace`` as
a second name. The translation grants nothing: the policy judges the result of :meth:`PathMap.to_host`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

AGENT_WORKSPACE = "/workspace"
"""A path of the workspace for every agent."""

_ENDS_NAME = r"(?:(?=\.(?:\s|\Z))|(?![^\s/\"'`<>|:;,)\]}\\*?&#]))"
"""
A path ends before one of these characters, or before the full stop of a sentence. So ``/home/me/work`` does not match
within ``/home/me/work-old``.
"""


@dataclass(frozen=True, slots=True)
class PathMap:
    """
    The paths of a session's workspace.

    :param host: absolute real path on the host, without a trailing slash.
    :param agent: absolute path where the agent works, and which it is shown. It may use :data:`AGENT_WORKSPACE` too.
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
        :returns: the path on the host. Relative paths are relative to the workspace; absolute paths outside it and
            paths that begin with ``~`` are unchanged.
        """
        for name in (self.agent, AGENT_WORKSPACE):
            if path == name or path.startswith(f"{name}/"):
                return self.host + path[len(name) :]
        if path.startswith(("/", "~")):
            return path
        return f"{self.host}/{path}" if path else self.host

    def to_agent(self, path: str) -> str:
        """:returns: the agent's path for a host path. Paths outside the workspace are unchanged."""
        if path == self.host:
            return self.agent
        return self.agent + path[len(self.host) :] if path.startswith(f"{self.host}/") else path

    def to_agent_text(self, text: str) -> str:
        """:returns: the text with the host path of the workspace replaced, alone or at the start of a path."""
        text = self._host_in_uri.sub(lambda _: f"file://{quote(self.agent)}", text)
        return self._host_in_text.sub(lambda _: self.agent, text)


def file_path(uri: str) -> str | None:
    """
    Extract the path of a ``file:`` URI (RFC 8089).

    :returns: the decoded absolute path; ``None`` for other schemes, other hosts, and URIs without a path.
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
