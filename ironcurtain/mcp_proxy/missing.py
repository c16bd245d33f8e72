"""
Find in a server's error messages what its sandbox lacks, files, modules or hosts, and say what to write in
``mcp-servers.json``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import PurePath

from ironcurtain.sandbox.spec import Access, Sandbox
from ironcurtain.sandbox.system_paths import is_system

MISSING_LIMIT = 20
"""Maximum number of files, modules and hosts of one run of a server that are reported as missing in its sandbox."""

_ABSOLUTE = re.compile(r"(?<![\w./-])/[^\s'\":,;()<>]+")
_MODULE = re.compile(
    r"(?:Cannot find (?:module|package)|No module named|cannot load such file --) ?['\"]?"
    r"((?:@[\w.-]{1,100}/)?[\w-][\w.-]{0,100})"
)
"""A module that Node, Python or Ruby does not find; what is below it does not matter."""

_HOST = re.compile(
    r"(?:getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|Could not resolve host:|Failed to resolve|dial tcp: lookup"
    r"|Failed to fetch: `?https?://) ?['\"]?((?:[A-Za-z0-9_-]{1,63}\.)+[A-Za-z]{2,63})(?![\w.-])"
)
"""A host that Node, curl, Python's urllib3, Go or uv looked for in vain."""


class Missing:
    """
    :param server: its name.
    :param sandbox: that of its current run.
    :ivar last: the last hint; empty if there was none.
    """

    def __init__(self, server: str, sandbox: Sandbox) -> None:
        self._server, self._sandbox = server, sandbox
        self._reported: set[str] = set()
        self.last = ""

    def hint(self, line: str) -> str | None:
        """
        :param line: a line of its standard error.
        :returns: what to write for a file, module or host that the line names and the sandbox lacks; once for each.
        """
        for path in map(os.path.normpath, _ABSOLUTE.findall(line)):
            if ".git" in path.split("/"):
                continue  # git prints what .git in the workspace names, which an agent can rewrite
            if not is_system(path) and not self._sandbox.reaches(path) and os.path.exists(path) and self._is_new(path):
                return self._told(f"{path} is outside the sandbox of MCP server {self._server}", path)
        if (named := _MODULE.search(line)) is not None and self._is_new(name := named[1].rstrip(".")):
            what = f"MCP server {self._server} does not find {name}, which may be outside its sandbox"
            return self._told(what, next(self._places(name), ""))
        if (looked_up := _HOST.search(line)) is not None and self._is_new(host := looked_up[1].lower()):
            what = f"{host} cannot be reached from the sandbox of MCP server {self._server}"
            self.last = f'{what}; to let it connect, write "sandbox": {{"network": ["{host}"]}} in mcp-servers.json'
            return self.last
        return None

    def _is_new(self, name: str) -> bool:
        if name in self._reported or len(self._reported) >= MISSING_LIMIT:
            return False
        self._reported.add(name)
        return True

    def _told(self, what: str, path: str) -> str:
        read = f'"sandbox": {{"read": ["{path or "/DIRECTORY"}"]}}'
        where = "" if path else ", with the directory that contains it"
        self.last = f"{what}; to let it read that, write {read} in mcp-servers.json{where}"
        return self.last

    def _places(self, name: str) -> Iterator[str]:
        """:returns: directories around those in the sandbox that contain a module, and are not in it."""
        given = (PurePath(path) for path, access in self._sandbox.mounts() if access in (Access.READ, Access.WRITE))
        first = name if name.startswith("@") else name.split(".")[0]
        for above in dict.fromkeys(parent for path in given for parent in path.parents):
            for module, add in (
                (f"node_modules/{name}", "node_modules"),
                (f"{first}.py", f"{first}.py"),
                (f"{first}/__init__.py", first),
            ):
                if os.path.exists(above / module) and not self._sandbox.reaches(str(above / add)):
                    yield str(above / add)
