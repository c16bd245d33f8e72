"""What never changes about a session: its numbers, its places, and what was asked for."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.audit.chain import timestamp
from ironcurtain.home.registry import label
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.model import SessionInfo, SessionRequest
from ironcurtain.session.parts import Services, SessionKind


class Identity(msgspec.Struct, frozen=True):
    """
    :param number: for people; never reused.
    :param workspace: what the agent works on.
    :param directory: path of the workspace for the agent.
    :param started_at: in ISO 8601, UTC.
    :param resumed: whether it was ended before.
    """

    id: str
    number: int
    request: SessionRequest
    paths: SessionPaths
    label: str
    workspace: Path
    directory: str
    started_at: str
    resumed: bool


def identity(
    kind: SessionKind[Any], request: SessionRequest, number: int, services: Services, earlier: SessionInfo | None
) -> Identity:
    """
    :param earlier: the description of the resumed session; ``None`` for a new one.
    :returns: the identity of a session that starts now.
    """
    session_id = earlier.id if earlier else str(uuid.uuid4())
    paths = SessionPaths(request.directory) if request.directory else services.home.session(session_id)
    return Identity(
        id=session_id,
        number=number,
        request=request,
        paths=paths,
        label=earlier.label if earlier else label(request.by or kind.agent_name, request.task),
        workspace=request.workspace or paths.sandbox,
        directory=earlier.directory if earlier else kind.directory(request.workspace),
        started_at=timestamp(services.now()),
        resumed=earlier is not None,
    )
