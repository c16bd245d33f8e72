"""The engine of the commands that judge calls without running any server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ironcurtain.cli.output import home, settings
from ironcurtain.cli.paths import UserPath

if TYPE_CHECKING:
    from ironcurtain.policy.engine import PolicyEngine
    from ironcurtain.policy.files import FileView
    from ironcurtain.policy.rules import Policy
    from ironcurtain.process.accounts import Account
    from ironcurtain.session.tool_files import ToolFiles

policy_option = click.option(
    "--policy",
    "policy_file",
    type=UserPath(),
    help="The policy file (default: policy.toml in the home).",
)

servers_option = click.option(
    "--servers",
    "servers_file",
    type=UserPath(),
    help="The MCP servers, for the hosts of their sandboxes (default: mcp-servers.json in the home).",
)


def tool_files(policy_file: Path | None, servers_file: Path | None = None) -> ToolFiles:
    """:returns: the files in force, with the given files in place of the default ones."""
    from ironcurtain.session.tool_files import ToolFiles

    named = {"policy": policy_file, "servers": servers_file}
    return ToolFiles.chosen(home(), {name: str(path) for name, path in named.items() if path is not None})


def engine_for(
    files: ToolFiles,
    workspace: str,
    *,
    policy: Policy | None = None,
    account: Account | None = None,
    view: FileView | None = None,
) -> PolicyEngine:
    """
    :param workspace: real path of the workspace.
    :param policy: the policy, if not that of ``files``.
    :param account: the account that servers run as, if not that of this process.
    :param view: answers about files, if not this machine.
    :returns: the engine that a session with this workspace would have.
    :raises ConfigurationError: one of the files is wrong.
    """
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.policy.engine import PolicyEngine
    from ironcurtain.policy.files import HOST_FILES
    from ironcurtain.policy.loading import default_annotations
    from ironcurtain.policy.pathmap import PathMap
    from ironcurtain.session.tools import protected_paths, server_bounds

    where, user_home = home(), person_home(os.environ, os.geteuid())
    return PolicyEngine(
        policy or files.load_policy(),
        default_annotations(),
        paths=PathMap(workspace),
        home=user_home,
        protected=protected_paths(where, user_home, files, settings(where).settings, Path(workspace)),
        servers=server_bounds(files.load_servers(workspace, user_home, os.environ), workspace, account),
        files=view or HOST_FILES,
    )
