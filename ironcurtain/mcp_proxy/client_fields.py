"""
What other MCP clients write into their files of servers, in the terms of ``mcp-servers.json``.

Fields that have a meaning here are renamed; the others are passed over, and named once. Nothing that lets another
client act unasked has an effect here.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from ironcurtain.mcp_proxy.windows_words import split_words

ALIKE = 0.82
"""Similarity from 0 to 1 from which an unknown field counts as a misspelled one: ``envs`` as ``env``, not ``file`` as
``ca_file``."""

MOST_SECONDS = 3600
"""Greatest ``timeout`` that is a number of seconds. Clients that count milliseconds write thousands."""

_VARIABLES = {
    "bearertokenenvvar": "bearer_token_env_var",
    "envhttpheaders": "env_http_headers",
    "envvars": "env_vars",
}
"""Fields that name variables of the environment."""

_MILLISECONDS = {
    "timeoutms": "timeout",
    "tooltimeoutms": "timeout",
    "timeoutmillis": "timeout",
    "startuptimeoutms": "startup_timeout_sec",
}
"""Fields whose number is one of milliseconds however small it is."""

_SECONDS = ("timeoutsec", "timeoutsecs", "timeoutseconds", "tooltimeoutsec")
"""Fields whose number is one of seconds however great it is."""

_TRUTHS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

_LIMITS = ("timeout", "startup_timeout_sec")
_DISABLED = ("disabled", "disable", "isdisabled")
_ENABLED = ("enabled", "enable", "isenabled", "isactive", "active")
NESTED = ("transport", "requestOptions", "requestInit")
"""Fields whose value can be a table of fields of the server, as that of ``command`` can."""

_PLAIN_FIELDS = ("command", "args", "env", "cwd", "url", "headers", "type", "timeout")
"""Fields of ours that are read in every spelling, since they give no rights."""

_EMPTY: tuple[Any, ...] = ("", [], {})

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_OF_SANDBOX = ("read", "write", "network")

_RENAMED = {
    **_VARIABLES,
    **{name: name for name in _PLAIN_FIELDS},
    "cmd": "command",
    "uri": "url",
    "envkeys": "env_vars",
    "envs": "env",
    "environmentvariables": "env",
    "httpurl": "url",
    "serverurl": "url",
    "streamablehttp": "url",
    "streamablehttpurl": "url",
    "baseurl": "url",
    "endpoint": "url",
    "environment": "env",
    "arguments": "args",
    "httpheaders": "headers",
    "workingdirectory": "cwd",
    "workdir": "cwd",
    "transport": "type",
    "transporttype": "type",
    "calltimeout": "timeout",
    "tooltimeout": "timeout",
    **dict.fromkeys(_SECONDS, "timeout"),
    "toolcalltimeout": "timeout",
    "requesttimeout": "timeout",
}
"""Names of fields without case and separators, and ours. A field of the first kind is preferred to one of ours."""

_TYPES = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "streamable": "http",
    "remote": "http",
    "sse": "sse",
}

_POLICY = "what is allowed is said in policy.toml"
_TOOLS = "agents see every tool; which calls are allowed is said in policy.toml"
_LOGIN = "log in with: ironcurtain mcp login"
_START = "write startup_timeout_sec, in seconds"
_FILE = 'write the variables into "env", as ${NAME}, or use env_command'
_PEOPLE = "it has no effect here"
_REASONS = {
    **dict.fromkeys(
        (
            "alwaysallow", "autoapprove", "autoapprovetools", "alwaysapprove", "trust", "trusted", "approvalmode",
            "defaulttoolsapprovalmode", "permissions", "requireapproval", "autoapproveall",
        ),
        _POLICY,
    ),
    **dict.fromkeys(
        ("includetools", "excludetools", "enabledtools", "disabledtools", "allowedtools", "blockedtools", "tools",
            "availabletools"),
        _TOOLS,
    ),
    **dict.fromkeys(
        ("oauth", "oauthscopes", "scopes", "auth", "authprovidertype", "targetaudience", "targetserviceaccount"), _LOGIN
    ),
    **dict.fromkeys(
        ("startuptimeoutsec", "startuptimeout", "inittimeout", "connecttimeout"), _START
    ),
    **dict.fromkeys(("envfile", "dotenv"), _FILE),
    "headershelper": "use headers_command",
    **dict.fromkeys(("sandboxenabled",), 'every server runs in a sandbox, unless it has "sandbox": "none"'),
    **dict.fromkeys(
        (
            "description", "name", "title", "displayname", "id", "icon", "icons", "iconurl", "logourl", "tags",
            "category", "provider", "providerurl", "homepage", "repository", "version", "author", "gallery",
            "fromgalleryid", "source", "extension", "extensionname", "schema", "note", "notes", "comment", "comments",
            "metadata", "settings", "dev", "debug", "watch", "watchpaths", "autostart", "startonlaunch", "alwaysload",
            "required", "remoteconfigured", "longrunning", "restart", "instructions", "useinstructions", "roots",
            "experimentaluserrmcpclient", "installsource", "isglobal", "errors", "status", "bundled",
        ),
        _PEOPLE,
    ),
}  # fmt: skip
"""Fields of other clients that are passed over, without case and separators, and what takes their place."""


class FieldError(Exception):
    """:param field: the field of one server that is wrong."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(detail)
        self.field, self.detail = field, detail


def is_disabled(entry: Mapping[str, Any]) -> bool:
    """:returns: whether an entry says that its server does not start."""
    return any(_own(name, value, ()) == ("disabled", True) for name, value in entry.items())


def is_table_of_values(name: str) -> bool:
    """:returns: whether a field has variables of the environment, or headers, in any client's spelling."""
    return _RENAMED.get(_plain(name)) in ("env", "headers")


def translated(entry: Mapping[str, Any], own: Collection[str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """
    :param entry: one server, as a client writes it.
    :param own: names of our fields.
    :returns: its fields in our terms; and what was passed over: reason to names of fields.
    :raises FieldError: a field looks like a misspelled one of ours, or cannot be understood.
    """
    given: dict[str, list[tuple[str, Any]]] = {}
    ignored: dict[str, list[str]] = {}
    for table in NESTED:
        if isinstance(nested := entry.get(table), dict):  # says what the entry does not
            entry = {**nested, **{name: value for name, value in entry.items() if name != table}}
    for name, value in entry.items():
        if value is None:
            continue
        ours, value = _own(name, value, own)
        if ours in _LIMITS and not (_is_number(value) and value > 0):
            ignored.setdefault("it is no number above 0", []).append(name)
        elif ours is None:
            ignored.setdefault(_reason(name, own), []).append(name)
        else:
            given.setdefault(ours, []).append((name, value))
    fields: dict[str, Any] = {}
    for ours, values in given.items():
        # Gemini CLI has httpUrl for what we call url, and url for the transport of 2024.
        (_, fields[ours]), *others = sorted(values, key=lambda each: (each[0] == ours) == (ours == "url"))
        if ours == "disabled":
            fields[ours] = next((value for _, value in values if value), False)
        elif others:
            ignored.setdefault("another field says the same", []).extend(name for name, _ in others)
    return _simplified(_with_variables(fields)), ignored


def _own(name: str, value: Any, own: Collection[str]) -> tuple[str | None, Any]:
    """:returns: the name and value of a field in our terms; ``None`` for one that has no meaning here."""
    plain = _plain(name)
    ours = name if name in own else _RENAMED.get(plain)
    if isinstance(value, str) and (ours in _LIMITS or plain in _MILLISECONDS) and _NUMBER.fullmatch(value):
        value = float(value)
    if (disables := plain in _DISABLED) or plain in _ENABLED:
        # What cannot be read is refused later, so that the server is not started.
        truth = _TRUTHS.get(str(value).casefold())
        return "disabled", value if truth is None else truth is disables
    if plain in _MILLISECONDS or (
        ours == "timeout" and plain not in _SECONDS and _is_number(value) and value > MOST_SECONDS
    ):
        return _MILLISECONDS.get(plain, "timeout"), value / 1000 if _is_number(value) else value
    if ours == "type" and isinstance(value, str):
        value = _TYPES.get(_plain(value), value)
    return ours, value


def _reason(name: str, own: Collection[str]) -> str:
    """
    :returns: why a field has no meaning here.
    :raises FieldError: it looks like a misspelled one of ours.
    """
    plain = _plain(name)
    if plain in _REASONS or not plain or name.startswith(("_", "#", "//", "x-")):
        return _REASONS.get(plain, _PEOPLE)
    if plain in _OF_SANDBOX:
        raise FieldError(name, f'there is no such setting: write "sandbox": {{"{plain}": ...}}')
    known = {_plain(each): each for each in own}
    if meant := difflib.get_close_matches(plain, known, 1, ALIKE):
        raise FieldError(name, f"there is no such setting: did you mean {known[meant[0]]}?")
    return "IronCurtain does not know it"


def _with_variables(fields: dict[str, Any]) -> dict[str, Any]:
    """:returns: fields in which those that name variables of the environment, as Codex has them, are references."""
    token, of_headers, of_env = (fields.pop(name, None) for name in _VARIABLES.values())
    headers, env = dict[str, Any](), dict[str, Any]()
    if isinstance(token, str):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    if isinstance(of_headers, dict):
        headers |= {header: f"${{{variable}}}" for header, variable in of_headers.items()}
    if isinstance(of_env, list):
        env |= {str(variable): f"${{{variable}}}" for variable in of_env}
    for name, more in (("headers", headers), ("env", env)):
        if more and isinstance(own := fields.get(name, {}), dict):
            fields[name] = {**more, **own}
    return fields


def _simplified(fields: dict[str, Any]) -> dict[str, Any]:
    """:returns: fields with a command that is one text, and with texts for numbers and truth values."""
    command = fields.get("command")
    if isinstance(command, dict):  # Zed
        nested = ((name, each) for name, each in command.items() if each is not None)
        fields = {**{_RENAMED.get(_plain(str(name)), str(name)): each for name, each in nested}, **fields}
        fields["command"] = fields.pop("path", "")
    elif isinstance(command, list) and command:  # OpenCode
        fields = {**fields, "command": command[0], "args": [*command[1:], *(fields.get("args") or [])]}
    fields = {name: value for name, value in fields.items() if name not in _PLAIN_FIELDS or value not in _EMPTY}
    if isinstance(line := fields.get("args"), str):
        with suppress(ValueError):  # named where the list is missed
            fields["args"] = split_words(line)
    for name in ("env", "headers"):
        fields |= {name: _pairs(fields[name])} if isinstance(fields.get(name), list) else {}
        if isinstance(table := fields.get(name), dict):
            fields[name] = {key: _text(value) for key, value in table.items() if value is not None}
    if isinstance(words := fields.get("args"), list):
        fields["args"] = [_text(word) for word in words]
    return fields


def _pairs(written: list[Any]) -> Any:
    """:returns: a table for a list of ``NAME=VALUE``, or of tables with name and value; else the same list."""
    found: dict[Any, Any] = {}
    for each in written:
        if isinstance(each, str) and "=" in each:
            name, _, value = each.partition("=")
        elif isinstance(each, dict) and each.keys() == {"name", "value"}:
            name, value = each["name"], each["value"]
        else:
            return written
        found[name] = value
    return found


def _text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool) or _is_number(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "").lstrip("$")
