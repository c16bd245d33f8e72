"""The fields of an entry in ``mcp-servers.json``. Their meaning: ``docs/reference/mcp-servers.rst``."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

START_SECONDS = 60.0
"""Default time limit in seconds from a server's start until it is ready (some download themselves first)."""

RIGHTS = frozenset(("sandbox", "install_scripts", "env_command", "headers_command", "ca_file", "agent_requests"))
"""Fields of ours that give a server more than it gets without them, or run commands outside its sandbox."""

AgentRequest = Literal["sampling"]
"""Requests to the agent that a server's configuration can permit; a person answers the others."""


class SandboxFields(msgspec.Struct, forbid_unknown_fields=True):
    """``sandbox``."""

    read: list[str] = []
    write: list[str] = []
    network: bool | list[str] = False


class ServerFields(msgspec.Struct, forbid_unknown_fields=True):
    """One entry."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    type: str | None = None
    disabled: bool = False
    timeout: Annotated[float, msgspec.Meta(ge=0)] = 0
    sandbox: SandboxFields | Literal["none"] | None = None
    install_scripts: bool = False
    env_command: dict[str, str] = {}
    headers_command: dict[str, str] = {}
    ca_file: str = ""
    agent_requests: list[AgentRequest] = []
    startup_timeout_sec: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = START_SECONDS
