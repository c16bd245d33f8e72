"""The servers that ``ironcurtain mcp add`` is to add."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from ironcurtain.cli.output import print_lines
from ironcurtain.cli.questions import confirmed
from ironcurtain.errors import NotFound, UsageError
from ironcurtain.home.user_paths import absolute_path, current_directory
from ironcurtain.platform.kernel import IS_MACOS
from ironcurtain.text.display import json_line, one_line
from ironcurtain.text.quantities import counted, noun

if TYPE_CHECKING:
    from ironcurtain.secrets.redaction import Secret

NAME_LIMIT = 64
"""Maximum number of characters shown of a name."""


class Candidate(msgspec.Struct, frozen=True):
    """
    A server to add.

    :param secrets: values that are secrets and will stand in the file, by the names of their variables and headers.
    """

    name: str
    entry: Mapping[str, Any]
    secrets: Mapping[str, Secret] = MappingProxyType({})

    @property
    def disabled(self) -> bool:
        """Whether its entry says that it does not start."""
        from ironcurtain.mcp_proxy.client_fields import is_disabled

        return is_disabled(self.entry)


def sandbox_of(network: Sequence[str], read: Sequence[str], write: Sequence[str]) -> dict[str, list[str]]:
    """:returns: the field ``sandbox`` of a server."""
    paths = {"read": list(map(str, map(absolute_path, read))), "write": list(map(str, map(absolute_path, write)))}
    return {member: values for member, values in {**paths, "network": list(network)}.items() if values}


def wanted(
    name: str | None,
    command: Sequence[str],
    url: str | None,
    source: str | None,
    env: Sequence[str],
    sandbox: Mapping[str, Sequence[str]],
) -> list[Candidate]:
    """
    :returns: the servers that the options of ``mcp add`` describe.
    :raises UsageError: the options contradict each other.
    :raises NotFound: there is no file, or it has no server of this name.
    """
    from ironcurtain.mcp_proxy.names import usable_name

    if source is not None:
        if command or url or env or sandbox:
            raise UsageError("--from takes the servers as they are written: leave out the command and other options")
        return list(_imported(source, name))
    if name is None or bool(command) == (url is not None):
        raise UsageError("give a name, and either -- COMMAND or --url: ironcurtain mcp add NAME -- COMMAND ARGUMENTS")
    if url is not None and (env or sandbox):
        raise UsageError("--env, --network, --read and --write are for servers that run here")
    entry: dict[str, Any] = {"url": url} if url is not None else {"command": command[0], "args": list(command[1:])}
    if env:
        entry["env"] = dict(map(_variable, env))
    if sandbox:
        entry["sandbox"] = sandbox
    if (called := usable_name(name)) != name:
        print_lines(
            f"{one_line(name, NAME_LIMIT)} is called {called} here: names are letters, digits, '-' and single '_'."
        )
    return [Candidate(called, entry)]


def may_start(candidates: Sequence[Candidate], yes: bool) -> bool:
    """
    Show what stands in a file of another program, before anything of it runs.

    :param yes: whether the person agreed beforehand.
    :returns: whether the person agrees.
    """
    from ironcurtain.secrets.redaction import Redactor

    for each in candidates:
        redactor = Redactor(each.secrets.values())
        print_lines(f"{each.name} is {json_line(redactor.value(dict(each.entry)))}")
    return yes or agreed(f"Start {counted(len(candidates), 'server')} to see the tools?")


def agreed(question: str) -> bool:
    """:returns: whether the person at the terminal says yes."""
    if not sys.stdin.isatty():
        print_lines("Nothing was written: without a terminal, --yes agrees.", err=True)
        return False
    return confirmed(question, default=False)


def _variable(text: str) -> tuple[str, str]:
    from ironcurtain.secrets.redaction import may_be_secret

    name, equals, value = text.partition("=")
    if equals and not value.startswith("${") and may_be_secret(name, value):
        raise UsageError(
            "the value may be a secret, and everybody on this machine can read a command line: put it into your "
            f"environment, and write --env {one_line(name, NAME_LIMIT)}"
        )
    return name, value if equals else f"${{{name}}}"


def _imported(source: str, only: str | None) -> Iterator[Candidate]:
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.mcp_proxy.client_files import CLIENTS, places, table, with_references, without_rights
    from ironcurtain.mcp_proxy.names import usable_name

    directory = current_directory()
    paths = [absolute_path(source)]
    if source in CLIENTS:
        paths = places(source, Path(person_home(os.environ, os.geteuid())), directory, os.environ, IS_MACOS)
    texts = [(path, text) for path in paths if (text := read_configuration(path)) is not None]
    if not texts:
        raise NotFound(f"there is no such file: {', '.join(map(str, paths))}")
    seen = set[str]()
    for path, text in texts:
        entries, here = table(text, str(path), directory).entries, set[str]()
        print_lines(f"{path} has {counted(len(entries), 'server')}.")
        for written in entries:
            name = usable_name(written.name)
            if only is not None and only not in (written.name, name):
                continue
            if (why := _useless(written.value)) or name in here:
                print_lines(f"{one_line(written.name, NAME_LIMIT)} is left out: {why or f'{name} is there already'}.")
            elif name not in seen:
                here.add(name)
                safe, taken = without_rights(written.value)
                if taken:
                    are = noun(len(taken), "is", "are")
                    print_lines(f"{name}: {', '.join(taken)} {are} left out, as only you give rights.")
                yield Candidate(name, *with_references(safe, os.environ))
        seen |= here
    if only is not None and only not in seen and usable_name(only) not in seen:
        raise NotFound(f"there is no server {only!r} in {', '.join(str(path) for path, _ in texts)}")


def _useless(entry: Any) -> str:
    """:returns: why an entry of another client cannot be a server here; empty if it can."""
    from ironcurtain.mcp_proxy.client_files import is_ours
    from ironcurtain.mcp_proxy.server_tables import is_part_of_client

    if not isinstance(entry, dict):
        return "it is no table of fields"
    if is_ours(entry):
        return "it is IronCurtain itself"
    return "it is a part of the other client, and no MCP server" if is_part_of_client(entry) else ""
