"""The files of the home that say which MCP servers a session has, and what they may do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import Home, read_configuration
from ironcurtain.mcp_proxy.servers_config import ServerConfig, read_servers, server_names
from ironcurtain.policy.check import require_right
from ironcurtain.policy.loading import default_annotations, default_policy, load_policy
from ironcurtain.policy.rules import Policy


class ToolFiles(msgspec.Struct, frozen=True):
    """
    The files with a session's servers and policy.

    :param named: whether the user named the file, so that it must exist; else there is a default.
    """

    servers: Path
    policy: Path
    servers_named: bool = False
    policy_named: bool = False

    @classmethod
    def chosen(cls, home: Home, options: Mapping[str, Any]) -> ToolFiles:
        """:returns: the files that the options ``servers`` and ``policy`` name, else the home's."""
        servers, policy = options.get("servers"), options.get("policy")
        return cls(
            Path(servers) if servers else home.mcp_servers,
            Path(policy) if policy else home.policy,
            bool(servers),
            bool(policy),
        )

    def load_policy(self) -> Policy:
        """:raises ConfigurationError: the file is wrong, has a mistake that ``policy check`` refuses, or is missing."""
        if not self.has_policy:
            return default_policy()
        text = read_configuration(self.policy) or ""
        return require_right(load_policy(self.policy), default_annotations(), self.server_names(), text)

    def server_names(self) -> frozenset[str]:
        """:returns: the servers that the person configured; none if their file is wrong."""
        with suppress(ConfigurationError):
            if (text := read_configuration(self.servers)) is not None:
                return server_names(text, str(self.servers))
        return frozenset()

    @property
    def has_policy(self) -> bool:
        """Whether a file has the policy; else the default policy applies."""
        return self.policy_named or self.policy.exists()

    def load_servers(self, workspace: str, user_home: str, environ: Mapping[str, str]) -> tuple[ServerConfig, ...]:
        """
        :param environ: the environment to which the file refers.
        :raises ConfigurationError: the file is wrong, or a named file is missing.
        """
        text = read_configuration(self.servers)
        if text is None:
            if self.servers_named:
                raise ConfigurationError(str(self.servers), "there is no such file")
            text = default_servers()
        return read_servers(text, str(self.servers), workspace=workspace, home=user_home, environ=environ)


def default_servers() -> str:
    """:returns: the default content of ``mcp-servers.json``: IronCurtain's file server."""
    # -I: Python must not import modules from the workspace, where the server starts and the agent writes.
    arguments = ["-I", "-m", "ironcurtain.servers.files", "$WORKSPACE", "$HOME"]
    return msgspec.json.format(
        msgspec.json.encode({"mcpServers": {"filesystem": {"command": sys.executable, "args": arguments}}}), indent=2
    ).decode()
