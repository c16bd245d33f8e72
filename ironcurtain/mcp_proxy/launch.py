"""What it takes to run a server as our child: its command line, its environment, its sandbox, its account."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from ironcurtain import bubblewrap
from ironcurtain.accounts import Account
from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.servers_config import CommandServer, SandboxConfig

INHERITED = ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "TMPDIR")
"""The variables, besides ``LC_*``, that a server gets from us. Others may hold our keys."""

CAUTIOUS = {
    "PYTHONSAFEPATH": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": "/dev/null",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_2": "protocol.ext.allow",
    "GIT_CONFIG_VALUE_2": "never",
}
"""
Servers start in the workspace, where agents write: Python must not find modules there (``python -m`` looks), and git
must not run what a repository's own settings name. A server's configured environment wins over these.
"""

FILE_SERVER = ("-I", "-m", "ironcurtain.servers.files")
"""How the arguments of our own file server begin."""

_TRIAL = '[ -x "$1" ] || exit 3; cd "$2" || exit 4'
TRIAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Launch:
    """:param argv: the command line; its first part is a path."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str


def small_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """:returns: of our environment, the little that servers get."""
    return {name: value for name, value in environ.items() if name in INHERITED or name.startswith("LC_")}


def prepare(
    server: CommandServer,
    environ: Mapping[str, str],
    secrets: Mapping[str, str],
    *,
    workspace: str,
    account: Account | None = None,
) -> Launch:
    """
    :param environ: our environment.
    :param secrets: the values that the server's ``env_command`` gave.
    :param workspace: where it starts, unless it is configured otherwise.
    :param account: as whom it runs, if not as we; we are root then.
    :raises Unavailable: its command, or what its sandbox needs, is not there, or not for this account.
    """
    environment = {**_inherited(environ, account), **CAUTIOUS, **server.environment, **secrets}
    cwd = server.cwd or workspace
    argv = [_program(server, environment, cwd), *server.args]
    if server.sandbox is not None:
        argv = _boxed(server.name, server.sandbox, argv, environment, cwd, account)
    elif account is not None:
        argv = _as_somebody(server, argv, cwd, workspace, account)
    return Launch((needed("setsid"), *argv), environment, cwd)


def told_to_root(account: Account | None, workspace: str) -> str:
    """
    :param account: as whom servers run; ``None`` as root, which is then what ``run_as`` says.
    :returns: for root, as whom the servers of a session run.
    """
    if account is None:
        return "WARNING: run_as is root, so MCP servers run as root: they may do everything, and read our keys"
    if _is_for_root(workspace, account):
        return f"MCP servers run as {account}, but our file server as root: the workspace {workspace} is root's alone"
    return f"MCP servers run as {account}"


def needed(program: str) -> str:
    """
    :returns: where a program of util-linux is.
    :raises Unavailable: it is missing.
    """
    if (found := shutil.which(program)) is None:
        raise Unavailable(f"the program {program} is missing (Debian: apt-get install util-linux)")
    return found


def _inherited(environ: Mapping[str, str], account: Account | None) -> dict[str, str]:
    ours = small_environment(environ)
    if account is None:
        return ours
    theirs = {"HOME": account.home, "USER": account.name}
    return {name: theirs.get(name, value) for name, value in ours.items() if name != "TMPDIR"} | theirs


def _as_somebody(server: CommandServer, argv: list[str], cwd: str, workspace: str, account: Account) -> list[str]:
    if _is_ours(argv[0]) and server.args[: len(FILE_SERVER)] == FILE_SERVER:
        # It opens its directories as root, wherever they lie, and becomes the account before its first call.
        first = 1 + len(FILE_SERVER)
        return argv if _is_for_root(workspace, account) else [*argv[:first], f"--account={account.ids}", *argv[first:]]
    needed("setpriv")
    trial = account.command(["/bin/sh", "-c", _TRIAL, "sh", argv[0], cwd])
    done = subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS, check=False)
    if done.returncode:
        what = f"enter {cwd}" if done.returncode == 4 else f"execute {argv[0]}"
        raise Unavailable(
            f"{account}, as whom MCP server {server.name} runs, cannot {what}: permit it, give the server a "
            '"sandbox" (what it names is within reach there), or set run_as in config.toml'
        )
    return account.command(argv)


def _is_ours(program: str) -> bool:
    """:returns: whether it is the Python that runs us, of our environment, by whichever of its names."""
    same = os.path.realpath(program) == os.path.realpath(sys.executable)
    return same and os.path.dirname(program) == os.path.dirname(sys.executable)


def _is_for_root(workspace: str, account: Account) -> bool:
    """:returns: whether root gave a directory of root's, where nobody but root can write."""
    status = os.stat(workspace)
    return not account.named and status.st_uid == 0 and not account.may_write(status)


def _program(server: CommandServer, environment: Mapping[str, str], cwd: str) -> str:
    command = os.path.join(cwd, server.command) if "/" in server.command else server.command
    if (found := shutil.which(command, path=environment.get("PATH", os.defpath))) is None:
        raise Unavailable(f"MCP server {server.name}: there is no program {server.command!r} in its PATH")
    return found


def _boxed(
    name: str,
    config: SandboxConfig,
    argv: list[str],
    environment: Mapping[str, str],
    cwd: str,
    account: Account | None,
) -> list[str]:
    if (problem := bubblewrap.available(account)) is not None:
        raise Unavailable(f"MCP server {name} is to run in a sandbox: {problem}")
    sandbox = bubblewrap.Sandbox(config.read, config.write, bool(config.domains), cwd, account)
    program, *rest = sandbox.command(argv)
    if (found := shutil.which(program, path=environment.get("PATH", os.defpath))) is None:
        raise Unavailable(f"MCP server {name}: {program} is not in its PATH")
    return [found, *rest]
