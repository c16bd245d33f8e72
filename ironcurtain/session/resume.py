"""Read the description of an ended session in order to resume it, and check a request for a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ironcurtain.errors import ConfigurationError, NotFound, Unavailable, UsageError
from ironcurtain.files.locks import FileLock, Held, is_held
from ironcurtain.home.layout import Home
from ironcurtain.servers.git_remote.addresses import checked_address
from ironcurtain.session.elsewhere import description
from ironcurtain.session.model import SessionInfo, SessionRequest
from ironcurtain.session.parts import SessionKind


def closed_session(home: Home, session_id: str) -> SessionInfo:
    """
    :returns: the description of a session, from its directory.
    :raises NotFound: there is no such session.
    :raises Unavailable: it is running, or its files but the audit log were removed.
    :raises ConfigurationError: its description is damaged.
    """
    paths = home.session(session_id)
    if "/" in session_id or not paths.snapshot.is_file():
        raise NotFound(f"there is no session {session_id} in {home.sessions}")
    info = description(paths)
    if info.id != session_id or info.version != SessionInfo.__struct_defaults__[0]:
        raise ConfigurationError(str(paths.snapshot), "describes another session, or has another version")
    if not paths.log.exists():  # each session has one until its files are removed
        raise Unavailable(
            f"session {info.number} cannot be resumed: its files were removed as those of an old session, and its "
            "agent would remember nothing; start a new session"
        )
    if is_held(paths.lock):
        raise Unavailable(f"session {info.number} runs now: end it first with 'ironcurtain stop {info.number}'")
    return info


def take_lock(lock: FileLock, number: int) -> None:
    """
    Take the lock of a session that starts.

    :raises Unavailable: the session is running.
    """
    try:
        lock.acquire()
    except Held:
        raise Unavailable(f"session {number} runs now: see 'ironcurtain sessions'") from None


def continued(request: SessionRequest, earlier: SessionInfo, home: Home) -> SessionRequest:
    """
    :returns: the request that resumes the session.
    :raises UsageError: the request names another agent or workspace than the session has.
    """
    if request.kind not in ("", earlier.kind):
        raise UsageError(f"session {earlier.number} is one of {earlier.kind}: it cannot be resumed with {request.kind}")
    own = home.session(earlier.id).sandbox
    workspace = None if Path(earlier.workspace) == own else Path(earlier.workspace)
    if request.workspace is not None and request.workspace != workspace:
        raise UsageError(f"session {earlier.number} works on {earlier.workspace}: it cannot be resumed elsewhere")
    return replace(request, kind=earlier.kind, workspace=workspace, options={**earlier.options, **request.options})


def check_repository(request: SessionRequest, kind: SessionKind[Any]) -> None:
    """:raises UsageError: the option ``repo`` cannot be used with this request."""
    if (address := request.options.get("repo")) is None or request.resume:
        return
    if request.workspace is not None:
        raise UsageError("give either a workspace or a repository")
    if kind.make_project is None or not isinstance(address, str):
        raise UsageError("this kind of session does not support a repository")
    checked_address(address)
