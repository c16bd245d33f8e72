"""Calls as audit logs record them, and what is known about the files of that time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from os.path import normpath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ironcurtain.errors import IronCurtainError
from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.engine import RESOURCE_TOOL, SUBSCRIBE_TOOL, PolicyEngine
from ironcurtain.policy.files import HostFiles
from ironcurtain.policy.history import NO_HISTORY, RATE_LIMIT, CallHistory
from ironcurtain.policy.pathmap import AGENT_WORKSPACE, file_path
from ironcurtain.policy.roles import PATH_ROLES, RESOURCE_ROLES
from ironcurtain.policy.verdict import ToolCall

REFUSED_BY_SESSION = frozenset(
    (
        *("unknown-tool", "invalid-arguments", "configured-server", "configured-network", "circuit-breaker"),
        *("hidden-text", "changed-definition", "not-pinned"),
    )
)
"""Rules in records that are not the policy's, or that depend on what a server offered. No policy changes them."""

_BEFORE_PATHS = frozenset(("missing-annotation", "structural-unresolvable-path", "git-path-enrichment-failed"))
"""Rules that deny a call before its paths are resolved, so that its record has them as the agent wrote them."""

_INCOMPLETE = re.compile(r"\[redacted(?: [^\]]*)?\]|\[[0-9]+ more characters\]\Z")


class NotRecorded(IronCurtainError):
    """The verdict depends on something that the audit log does not contain."""


class RecordedCall(Struct, frozen=True):
    """
    A call in an audit log.

    :param time: UTC in ISO 8601.
    :param workspace: the real path of the session's workspace at that time.
    :param arguments: with the real paths that were judged.
    :param creates: real paths of files that it would create; ``None`` if it writes none, or if that is not recorded.
    :param history: what happened before, with times in seconds since the epoch.
    """

    id: str
    sequence: int
    time: str
    workspace: str
    server: str
    tool: str
    arguments: dict[str, Any]
    decision: str
    rule: str
    creates: tuple[str, ...] | None
    history: CallHistory


class SessionRecords:
    """
    Follows the records of one audit log.

    :param annotations: the annotations in force, which tell what calls removed.
    """

    def __init__(self, annotations: Annotations) -> None:
        self._tools = annotations.table()
        self._open: dict[str, RecordedCall] = {}
        self.workspace = ""
        """The real path of the session's workspace."""
        self.history = NO_HISTORY
        """What happened up to the last record, with times in seconds since the epoch."""

    def calls(self, records: Iterable[Mapping[str, Any]]) -> Iterator[RecordedCall]:
        """
        :param records: the next records, in order.
        :returns: the calls among them. Records that are not as the gate writes them are left out.
        """
        for record in records:
            kind = record.get("kind")
            self.history = self.history.at(_seconds(record.get("time")))
            if kind in ("session", "policy"):  # the second has the real path
                self.workspace = str(record.get("workspace") or self.workspace)
            elif kind == "call" and (call := _call(record, self.workspace, self.history)) is not None:
                yield call
                self._judged(call)
            elif kind == "decision" and record.get("outcome") == "approved":
                self._made(self._open.get(str(record.get("callId"))))
            elif kind == "repeats" and record.get("allowed") is True:
                self._repeated(record)
            elif kind == "outcome":
                self._ended(self._open.pop(str(record.get("callId")), None), record.get("status"))

    def _judged(self, call: RecordedCall) -> None:
        if call.decision != "deny":
            self._open[call.id] = call
        if call.decision == "allow":
            self._made(call)

    def _repeated(self, record: Mapping[str, Any]) -> None:
        count = record.get("count")
        for _ in range(min(count, RATE_LIMIT) if isinstance(count, int) else 0):
            self.history = self.history.made(str(record.get("server")), str(record.get("tool")), self.history.now)

    def _made(self, call: RecordedCall | None) -> None:
        if call is not None:
            self.history = self.history.made(call.server, call.tool, self.history.now)

    def _ended(self, call: RecordedCall | None, status: object) -> None:
        if call is None or status != "success":
            return
        tool = self._tools.get((call.server, call.tool))
        roles = {} if tool is None else tool.resolve(call.arguments)
        values = [(its, call.arguments.get(name)) for name, its in roles.items()]
        removed = [value for its, value in values if "delete-path" in its]
        deletes = (item for value in removed for item in (value if isinstance(value, list) else [value]))
        self.history = self.history.changed(call.creates or (), (item for item in deletes if isinstance(item, str)))
        if call.creates is None and any("write-path" in its and value is not None for its, value in values):
            self.history = replace(self.history, complete=False)


def _seconds(time: object) -> float:
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return float("-inf")


def _call(record: Mapping[str, Any], workspace: str, history: CallHistory) -> RecordedCall | None:
    texts = [record.get(name) for name in ("callId", "time", "server", "tool", "decision", "rule")]
    arguments, sequence = record.get("arguments"), record.get("sequence")
    if not all(isinstance(text, str) for text in texts) or not isinstance(arguments, dict):
        return None
    call_id, time, server, tool, decision, rule = map(str, texts)
    number = sequence if isinstance(sequence, int) else 0
    written = record.get("creates")
    creates = tuple(map(str, written)) if isinstance(written, list) else None
    return RecordedCall(call_id, number, time, workspace, server, tool, arguments, decision, rule, creates, history)


def incomplete(value: Any, name: str = "arguments") -> str:
    """
    :param value: a JSON value of a record.
    :param name: what to call it.
    :returns: the name of the first part that was redacted or cut; empty if the value is complete.
    """
    if isinstance(value, str):
        return name if _INCOMPLETE.search(value) else ""
    if isinstance(value, dict):
        inside = (incomplete(key, name) or incomplete(member, f"{name}.{key}") for key, member in value.items())
        return next(filter(None, inside), "")
    if isinstance(value, list):
        return next(filter(None, (incomplete(item, f"{name}[{index}]") for index, item in enumerate(value))), "")
    return ""


class FormerWorkspace(HostFiles):
    """
    This machine, but for a workspace that may be gone or changed: nothing in it, or on the way to it, is a link.

    :param workspace: its real path when it was used.
    """

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace

    def link(self, path: str) -> str | None:
        """See :meth:`~ironcurtain.policy.files.FileView.link`."""
        inside = path.startswith(f"{self._workspace}/")
        return "" if inside or f"{self._workspace}/".startswith(f"{path}/") else super().link(path)


class RecordedFiles:
    """
    What a record says about files. Everything else raises :class:`NotRecorded`.

    :param resolved: whether the call's paths are the real paths of that time.
    :param creates: see :class:`RecordedCall`.
    """

    def __init__(self, *, resolved: bool, creates: tuple[str, ...] | None) -> None:
        self._resolved, self._creates = resolved, creates

    def link(self, path: str) -> str | None:
        """See :meth:`~ironcurtain.policy.files.FileView.link`."""
        if not self._resolved:
            raise NotRecorded("where a path led that was recorded as the agent wrote it")
        return ""

    def exists(self, path: str) -> bool:
        """See :meth:`~ironcurtain.policy.files.FileView.exists`."""
        if self._creates is None:
            raise NotRecorded("whether a file existed before the call")
        return path not in self._creates

    def same(self, left: str, right: str) -> bool:
        """See :meth:`~ironcurtain.policy.files.FileView.same`."""
        raise NotRecorded("whether two names that differ in case or Unicode form were those of one file")

    def git_settings(self, repository: str) -> bytes | None:
        """See :meth:`~ironcurtain.policy.files.FileView.git_settings`."""
        raise NotRecorded("the remotes in the settings of a repository")


def files_of(engine: PolicyEngine, call: RecordedCall) -> RecordedFiles:
    """:returns: what the record of a call says about its files."""
    paths = list(_paths(engine, call))
    real = all(path is not None and _is_real(path, call.workspace) for path in paths)
    return RecordedFiles(resolved=real and call.rule not in _BEFORE_PATHS, creates=call.creates)


def _paths(engine: PolicyEngine, call: RecordedCall) -> Iterator[str | None]:
    """:returns: each path of a call; ``None`` for one that is never recorded as a real path."""
    if call.tool in (RESOURCE_TOOL, SUBSCRIBE_TOOL):
        path = file_path(str(call.arguments.get("uri", "")))
        yield from () if path is None else (path,)
        return
    for name, roles in engine.argument_roles(ToolCall(call.server, call.tool, call.arguments)).items():
        value = call.arguments.get(name)
        first = next((role for role in roles if role in RESOURCE_ROLES), "")
        if value is not None and not PATH_ROLES.isdisjoint(roles):
            yield from (
                item if isinstance(item, str) and first in PATH_ROLES else None
                for item in (value if isinstance(value, list) else [value])
            )


def _is_real(path: str, workspace: str) -> bool:
    as_agent = f"{path}/".startswith(f"{AGENT_WORKSPACE}/") and workspace != AGENT_WORKSPACE
    return path[:1] == "/" != path[1:2] and normpath(path) == path and not as_agent
