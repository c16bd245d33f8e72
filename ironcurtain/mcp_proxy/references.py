"""
References in ``mcp-servers.json`` to variables of the environment, as MCP clients write them.

``${NAME}``, ``${NAME:-default}``, ``${env:NAME}`` and ``{env:NAME}`` stand for variables, ``${workspaceFolder}``,
``${userHome}``, ``$WORKSPACE``, ``$HOME`` and a leading ``~/`` for directories.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

import msgspec

from ironcurtain.mcp_proxy.windows_words import windows_variable
from ironcurtain.secrets.redaction import Secret, may_be_secret, names_path
from ironcurtain.secrets.rules import find, is_secret_name

TOKEN_LENGTH = 16
"""Minimum number of characters of a value that is taken for a token, if it is one word with letters and digits."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = re.compile(
    rf"\$\{{(?:env:)?(?P<name>{_NAME})(?::-(?P<default>(?:[^{{}}]|\$\{{[^{{}}]*\}})*))?\}}"
    rf"|\{{env:(?P<braced>{_NAME})\}}"
    r"|\$(?P<directory>WORKSPACE|HOME)(?![A-Za-z0-9_])"
    r"|\$\{/\}"
)
_IN_VALUE = re.compile(
    rf"{_REFERENCE.pattern}|(?<!\S)\$(?P<alone>[A-Z_][A-Z0-9_]+)(?!\S)|\$(?P<search>PATH)(?![A-Za-z0-9_])"
)
"""Where no shell reads the text, also without braces: a complete word, or ``$PATH``."""

_FOLDER = re.compile(r"\$\{workspace(?:Folder|Root):(?P<name>[^{}]*)\}")
"""A directory of several that an editor has open."""

_BACKSLASH = re.compile(rf"(?:\$\{{(?:env:)?{_NAME}\}}|\$(?:WORKSPACE|HOME)|^~)\\")
"""What begins a path that was written for Windows."""

_PROFILE = re.compile(r"%USERPROFILE%", re.IGNORECASE)
_FOREIGN = re.compile(r"\$?\{(?P<kind>input|command|config|file|secret|vault):(?P<rest>[^{}]*)\}")
_LEFT = re.compile(r"\$\{[^{}]*\}|\$\{\{.*?\}\}")
_TOKEN = re.compile(rf"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_+=-]{{{TOKEN_LENGTH},}}")


class References(msgspec.Struct):
    """
    Expands the references of one server, and notes what was wrong.

    :param environ: the environment of the user.
    :param workspace: real path of the session's workspace.
    :param home: the user's home directory.
    :param own: names of the variables that the server itself has, for programs that expand references of their own.
    :ivar problems: why the server cannot start, in words for people.
    :ivar used: names of the variables that were taken from the environment, in their order.
    :ivar secrets: their values, if they can be secret.
    """

    environ: Mapping[str, str]
    workspace: str
    home: str
    own: Collection[str] = ()
    problems: list[str] = msgspec.field(default_factory=list)
    used: dict[str, None] = msgspec.field(default_factory=dict)
    secrets: list[Secret] = msgspec.field(default_factory=list)

    def value(self, text: str, place: str) -> str:
        """
        :param text: a text that no other user sees: a variable's value, a header's value, a URL.
        :param place: the name of its field, for messages.
        """
        rest = _FOLDER.sub(" ", _FOREIGN.sub(" ", _REFERENCE.sub(" ", text)))
        if (left := _LEFT.search(rest)) is not None:
            self._wrong(f"{place}: {left[0]} is not known to IronCurtain; write ${{NAME}}, or use env_command")
        return self._expanded(text, place, _IN_VALUE)

    def word(self, text: str, place: str) -> str:
        """
        :param text: a part of the command line, which all users of the machine can read, so that no secret may be in
            it, or another path.
        :param place: the name of its field, for messages.
        """
        return self._expanded(text, place, _REFERENCE)

    def path(self, text: str) -> str:
        """:returns: a path in which only directories are expanded."""
        known = {"WORKSPACE": self.workspace, "HOME": self.home, "workspaceFolder": self.workspace}
        known["userHome"] = self.home

        def directory(found: re.Match[str]) -> str:
            return known.get(found["directory"] or found["name"] or "", found[0])

        return self._at_home(_REFERENCE.sub(directory, text))

    def _at_home(self, text: str) -> str:
        return f"{self.home}{text[1:]}" if text.startswith("~/") else text

    def _native(self, text: str, place: str) -> str:
        """:returns: a text without what is plain of Windows and of editors with several directories."""
        text = _PROFILE.sub("${userHome}", text)
        if _BACKSLASH.search(text):
            text = text.replace("\\", "/")
        if (variable := windows_variable(text)) is not None:
            self._wrong(f"{place}: {variable} is a variable of Windows; write the value that it shall have here")
        for folder in _FOLDER.finditer(text):
            if folder["name"] != os.path.basename(self.workspace):
                self._wrong(f"{place}: {folder[0]} is another directory than the workspace: write its path")
        return _FOLDER.sub("${workspaceFolder}", text)

    def _expanded(self, text: str, place: str, pattern: re.Pattern[str]) -> str:
        text = self._native(text, place)
        if (foreign := _FOREIGN.search(text)) is not None:
            self._wrong(f"{place}: {foreign[0]} {_FOREIGN_WORDS[foreign['kind']]}")
            return text

        def replaced(found: re.Match[str]) -> str:
            name = next((each for group, each in found.groupdict().items() if each and group != "default"), None)
            if name is None:
                return "/"
            if (directory := self._directory(name)) is not None:
                return directory
            if shown and name in self.own:
                return found[0]  # the server's program finds it in its environment
            if (default := found["default"]) is not None and not self.environ.get(name):
                return self._expanded(default, place, pattern)
            return self._variable(name, place, shown)

        shown = pattern is _REFERENCE
        return self._at_home(pattern.sub(replaced, text))

    def _variable(self, name: str, place: str, shown: bool) -> str:
        value = self.environ.get(name)
        if value is None:
            self._wrong(f"{place}: the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
            return ""
        if shown and _is_secret(name, value):
            self._wrong(
                f"{place}: the value of {name} may be a secret, and everybody on this machine can read a command line: "
                f'give it to the server as "env": {{"{name}": "${{{name}}}"}}'
            )
            return ""
        self.used[name] = None
        if may_be_secret(name, value):
            self.secrets.append(Secret(value, f"environment variable {name}"))
        return value

    def _directory(self, name: str) -> str | None:
        if name in ("workspaceFolder", "workspaceRoot", "WORKSPACE"):
            return self.workspace
        if name == "workspaceFolderBasename":
            return os.path.basename(self.workspace)
        if name in ("userHome", "HOME"):
            return self.home
        return "/" if name == "pathSeparator" else None

    def _wrong(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)


_ELSEWHERE = "is filled in by another client only; write the value, ${NAME} for a variable of your environment, or "
_FOREIGN_WORDS = {
    "input": "is asked for by VS Code only; write ${NAME} for a variable of your environment, or use env_command",
    **dict.fromkeys(("command", "config", "file", "secret", "vault"), f"{_ELSEWHERE}use env_command"),
}


def _is_secret(name: str, value: str) -> bool:
    """:returns: whether a value is kept out of command lines."""
    return not names_path(value) and (is_secret_name(name) or bool(find(value)) or _TOKEN.fullmatch(value) is not None)
