"""Attack the file server, which runs outside any sandbox, by its own protocol."""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import IronCurtainError
from ironcurtain.mcp_proxy.launch import OWN_SERVERS, Ground, Launch, prepare
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.prove.outside import Outside
from ironcurtain.prove.planted import CONTENT, DIRECTORY_LINK, HARD_LINK, INNOCENT, LINK, PIPE, ROOT_LINK, begin, plant
from ironcurtain.prove.report import Attempt, Report

PROTECTED = "prove-protected"
"""A directory in the workspace that the server must not show, with a file of the name of the one outside."""

MOVING = "prove-moving"
"""Is a directory at one time, and a link to the directory outside at another."""

SECONDS = 20.0
"""Time limit for one answer: none takes a tenth of a second."""

ROUNDS = 300
"""Number of calls while a directory is being replaced by a link."""

ANSWER_LIMIT = 1024 * 1024
"""Most bytes of one answer; what is outside is smaller."""


class NoAnswer(IronCurtainError):
    """The server ended, or did not answer in time, or not as it should."""


class Attack(msgspec.Struct, frozen=True):
    """
    Calls that must not reach the file outside.

    :param group: as in :class:`~ironcurtain.prove.report.Attempt`.
    :param calls: tool and arguments of each.
    :param sign: what an answer contains only if a call reached something; empty: the secret.
    """

    group: str
    what: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    sign: str = ""


def prove_file_server(subject: str, server: CommandServer, ground: Ground, outside: Outside) -> Report:
    """
    Call the server's tools with hostile arguments. The workspace is its only directory.

    :param ground: with an empty workspace, which is filled.
    :param outside: a file that the server's account may read and write.
    :raises Unavailable: the server's program is missing.
    :raises OSError: the workspace cannot be filled.
    """
    workspace = Path(ground.workspace)
    begin(workspace)
    plant(workspace, outside)
    _protect(workspace, outside)
    alone = dataclasses.replace(server, args=(*OWN_SERVERS[0], ground.workspace))
    launch = prepare(alone, {}, replace(ground, protected=(str(workspace / PROTECTED),)))
    attempts, complete, traces = list[Attempt](), False, list[str]()
    with suppress(NoAnswer, OSError), _client(launch) as client:
        client.greet()
        for attack in _attacks(workspace, outside):
            with _moving(workspace, outside) if MOVING in str(attack.calls) else nullcontext():
                detail = _refusal(client, attack, outside)
            new = [trace for trace in outside.seen() if trace not in traces]
            traces += new
            attempts.append(Attempt(attack.group, attack.what, "failed" if detail and not new else "succeeded", detail))
        complete = True
    return Report(subject, attempts, complete, traces)


def _refusal(client: _Client, attack: Attack, outside: Outside) -> str:
    """:returns: the last refusal; empty if an answer contained what it must not."""
    signs = (attack.sign,) if attack.sign else (outside.secret, b64encode(outside.file.read_bytes()).decode())
    answer = ""
    for tool, arguments in attack.calls:
        answer = client.call(tool, arguments)
        if any(sign in answer for sign in signs):
            return ""
    return answer.strip()[:200] or "an empty answer"


def _attacks(workspace: Path, outside: Outside) -> Iterator[Attack]:
    file, name = str(outside.file), outside.file.name
    up = "../" * len(workspace.parts)
    ways = (
        ("its path", file),
        ("a path with ..", f"{up}{file.lstrip('/')}"),
        ("the workspace's path and ..", f"{workspace}/{up}{file.lstrip('/')}"),
        ("a link", LINK),
        ("a link to its directory", f"{DIRECTORY_LINK}/{name}"),
        ("a link to the root directory", f"{ROOT_LINK}{file}"),
        ("a link and ..", f"{DIRECTORY_LINK}/../{outside.file.parent.name}/{name}"),
        ("/proc/self/root", f"/proc/self/root{file}"),
        ("/proc/self/cwd", f"/proc/self/cwd/{LINK}"),
        ("a descriptor", f"/proc/self/fd/3/{LINK}"),
        ("a path with a NUL", f"{INNOCENT}\0{file}"),
    )
    for what, path in ways:
        yield Attack("read", f"read the file outside by {what}", tuple(_reads(path)))
    for path in (DIRECTORY_LINK, f"{ROOT_LINK}{outside.file.parent}", str(outside.file.parent)):
        yield Attack("read", f"list its directory by {path}", tuple(_lists(path)), name)
    for what, path in ways:
        yield Attack("write", f"write the file outside by {what}", tuple(_writes(path)))
    yield Attack("write", "write it by a hard link", tuple(_writes(HARD_LINK))[1:])
    search = ("search_files", {"path": ".", "pattern": f"**/{name}*"})
    yield Attack("search", "find it, or what is protected, by a search", (search,), name)
    yield Attack("pipes", "wait for a FIFO", tuple(_reads(PIPE)))
    moving = f"{MOVING}/{name}"
    yield Attack("links", "read the file outside while a directory becomes a link", tuple(_reads(moving)) * ROUNDS)
    yield Attack("links", "write the file outside while a directory becomes a link", tuple(_writes(moving)) * ROUNDS)
    for path in (PROTECTED, f"./{PROTECTED}", f"{PROTECTED}/../{PROTECTED}", f"{INNOCENT}/../{PROTECTED}"):
        yield Attack("protected files", f"read one as {path}", tuple(_reads(f"{path}/{name}")))


def _reads(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((tool, {"path": path}) for tool in ("read_text_file", "read_media_file"))
    yield "read_multiple_files", {"paths": [path]}


def _writes(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "edit_file", {"path": path, "edits": [{"oldText": "secret", "newText": "written"}]}
    yield "write_file", {"path": path, "content": "written by the file server\n"}
    yield "move_file", {"source": INNOCENT, "destination": path}


def _lists(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((tool, {"path": path}) for tool in ("list_directory", "list_directory_with_sizes", "directory_tree"))


def _protect(workspace: Path, outside: Outside) -> None:
    with suppress(OSError):  # on another file system
        os.link(outside.file, workspace / HARD_LINK)
    (workspace / PROTECTED).mkdir()
    (workspace / PROTECTED / outside.file.name).write_bytes(outside.file.read_bytes())


@contextmanager
def _moving(workspace: Path, outside: Outside) -> Iterator[None]:
    """Let a directory and a link to the one outside have the same name by turns."""
    name, directory, link = (str(workspace / f"{MOVING}{ending}") for ending in ("", "-directory", "-link"))
    Path(directory).mkdir(exist_ok=True)
    Path(directory).chmod(0o777)
    (Path(directory) / outside.file.name).write_text(CONTENT)
    Path(link).symlink_to(outside.file.parent)
    ended = Event()

    def move() -> None:
        while not ended.is_set():
            for each in (directory, link):
                os.rename(each, name)
                os.rename(name, each)

    mover = Thread(target=move, daemon=True)
    mover.start()
    try:
        yield
    finally:
        ended.set()
        mover.join()
        os.unlink(link)


class _Client:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._input, self._output, self._number, self._buffer = process.stdin, process.stdout, 0, bytearray()

    def greet(self) -> None:
        """:raises NoAnswer: it does not serve the workspace."""
        asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "prove", "version": "1"}}
        self._ask("initialize", asked)
        if CONTENT.strip() not in self.call("read_text_file", {"path": INNOCENT}):
            raise NoAnswer("the file server does not serve the workspace")

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """
        :returns: the text of an answer, whatever it is.
        :raises NoAnswer: there is none.
        """
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments})
        return "\n".join(_texts(answer))

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._input.write(f"{json.dumps(asked)}\n".encode())
        self._input.flush()
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._output], [], [], SECONDS)
            data = os.read(self._output.fileno(), 65536) if ready else b""
            if not data or len(self._buffer) > ANSWER_LIMIT:
                raise NoAnswer(f"the file server gave no answer to {method}")
            self._buffer += data
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        return json.loads(line)


def _texts(value: Any) -> Iterator[str]:
    """:returns: the texts and data in an answer."""
    if isinstance(value, dict):
        yield from (str(value[key]) for key in ("text", "data", "blob", "message") if key in value)
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(each)


@contextmanager
def _client(launch: Launch) -> Iterator[_Client]:
    process = subprocess.Popen(
        launch.argv, env=dict(launch.environment), cwd=launch.cwd,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield _Client(process)
    finally:
        process.kill()
        process.communicate()
