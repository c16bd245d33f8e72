"""What it takes to run a server as our child: its command line, its environment, its sandbox, its account."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.servers_config import CommandServer, SandboxConfig
from ironcurtain.process.accounts import FREE_UIDS, SEARCH, WRITE, Account
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.bubblewrap import is_system
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.spec import Sandbox

INHERITED = ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "TMPDIR")
"""The variables, besides ``LC_*``, that a server gets from us. Others may hold our keys."""

CAUTIOUS = {"PYTHONSAFEPATH": "1"}
"""
Servers start in the workspace, where agents write: Python must not find modules there (``python -m`` looks). A server's
configured environment wins over this.
"""

OWN_SERVERS = tuple(("-I", "-m", f"ironcurtain.servers.{name}") for name in ("files", "git_remote"))
"""
How the arguments of our own servers begin. The first follows no link of an agent's and runs nothing of it; the second
runs git in sandboxes of its own.
"""

FOR_CREDENTIALS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
"""The variables by which git's credential helpers and ssh find what answers for the user; for our own git server."""

MISSING_LIMIT = 20
"""Most files of one run of a server that are told as missing in its sandbox."""

_TRIAL = '[ -x "$1" ] || exit 3; cd "$2" || exit 4'
TRIAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Launch:
    """
    :param argv: the command line; its first part is a path.
    :param inputs: what the program reads from other descriptors than the standard ones, by number.
    :param sandbox: what it may reach; ``None`` if it runs outside any sandbox.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    inputs: Mapping[int, bytes] = field(default_factory=dict)
    sandbox: Sandbox | None = None


@dataclass(frozen=True, slots=True)
class Ground:
    """
    What the servers of one session stand on.

    :param environ: our environment.
    :param workspace: real path of the session's workspace: where servers start, unless they are configured otherwise.
    :param protected: absolute paths that no server sees, unless its sandbox names just them.
    :param account: as whom servers run, if not as we; we are root then.
    :param settings: content of ``.gitconfig`` in the home of sandboxed servers.
    :param writers: the servers whose tools change files, which may write the workspace.
    :param downloads: an existing directory for programs that ``npx`` and ``uvx`` bring; ``None``: they bring them anew.
    """

    environ: Mapping[str, str]
    workspace: str
    protected: tuple[str, ...] = ()
    account: Account | None = None
    settings: bytes = b""
    writers: frozenset[str] = frozenset()
    downloads: Path | None = None


def small_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """:returns: of our environment, the little that servers get."""
    return {name: value for name, value in environ.items() if name in INHERITED or name.startswith("LC_")}


def prepare(
    server: CommandServer, secrets: Mapping[str, str], ground: Ground, installed: Sequence[str] | None = None
) -> Launch:
    """
    :param secrets: the values that the server's ``env_command`` gave.
    :param installed: what its program needs, if that is known; else it is looked for.
    :raises Unavailable: its command, or what its sandbox needs, is not there, or not for this account.
    """
    environment = {**_inherited(ground), **CAUTIOUS, **server.environment, **secrets}
    cwd = server.cwd or ground.workspace
    argv = [_program(server, environment, cwd), *server.args]
    account, setsid = ground.account, needed("setsid")
    if is_own(server):
        if server.args[:3] == OWN_SERVERS[0]:
            roots = [word for word in server.args if word.startswith("/")]
            argv += [f"--hide={path}" for path in _inside(roots, ground.protected)]
        if account is not None and not is_for_root(ground.workspace, account):
            # It opens its directories as root, wherever they lie, and becomes the account before its first call.
            argv[len(OWN_SERVERS[0]) + 1 : len(OWN_SERVERS[0]) + 1] = [f"--account={account.ids}"]
        elif server.args[:3] == OWN_SERVERS[1]:
            environment |= {name: ground.environ[name] for name in FOR_CREDENTIALS if name in ground.environ}
        return Launch((setsid, *argv), environment, cwd)
    if server.sandbox is None:
        line = argv if account is None else _as_somebody(server, argv, cwd, account)
        return Launch((setsid, *line), environment, cwd)
    if (problem := programs.unavailable(account)) is not None:
        raise Unavailable(
            f"MCP server {server.name} runs in a sandbox, and {problem}; 'ironcurtain doctor' says more. To run it "
            'outside, where it may do all that its account may, write "sandbox": "none" in mcp-servers.json'
        )
    sandbox = _sandbox(server.name, server.sandbox, argv, environment, cwd, ground, installed)
    environment = {name: value for name, value in environment.items() if name != "TMPDIR"}
    environment["HOME"] = sandbox.home or "/tmp"
    line = programs.command(sandbox, argv)
    return Launch((setsid, *line), environment, "/", programs.inputs(sandbox), sandbox)


def is_own(server: CommandServer) -> bool:
    """:returns: whether a server is one of ours, started by the Python that runs us."""
    program = shutil.which(server.command) or server.command
    same = os.path.realpath(program) == os.path.realpath(sys.executable)
    ours = same and os.path.dirname(program) == os.path.dirname(sys.executable)
    return ours and any(server.args[: len(own)] == own for own in OWN_SERVERS)


def told_to_root(account: Account | None, workspace: str) -> str:
    """
    :param account: as whom servers run; ``None`` as root, which is then what ``run_as`` says.
    :returns: for root, as whom the servers of a session run.
    """
    if account is None:
        return "WARNING: run_as is root, so MCP servers run as root: those outside a sandbox may do everything"
    if is_for_root(workspace, account):
        return f"MCP servers run as {account}, but our file server as root: the workspace {workspace} is root's alone"
    if account.uid in FREE_UIDS:
        return f"MCP servers run as {account}, which no account has; set run_as in config.toml to name one"
    return f"MCP servers run as {account}"


def needed(program: str) -> str:
    """
    :returns: where a program of util-linux is.
    :raises Unavailable: it is missing.
    """
    if (found := shutil.which(program)) is None:
        raise Unavailable(f"the program {program} is missing (Debian: apt-get install util-linux)")
    return found


def _inherited(ground: Ground) -> dict[str, str]:
    ours, account = small_environment(ground.environ), ground.account
    if account is None:
        return ours
    theirs = {"HOME": account.home, "USER": account.name}
    return {name: theirs.get(name, value) for name, value in ours.items() if name != "TMPDIR"} | theirs


def _as_somebody(server: CommandServer, argv: list[str], cwd: str, account: Account) -> list[str]:
    needed("setpriv")
    trial = account.command(["/bin/sh", "-c", _TRIAL, "sh", argv[0], cwd])
    done = subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS, check=False)
    if done.returncode:
        what = f"enter {cwd}" if done.returncode == 4 else f"execute {argv[0]}"
        raise Unavailable(
            f"{account}, as whom MCP server {server.name} runs, cannot {what}: permit it, let the server run in a "
            "sandbox (where what it needs is within reach), or set run_as in config.toml"
        )
    return account.command(argv)


def is_for_root(workspace: str, account: Account) -> bool:
    """:returns: whether root gave a directory of root's, where nobody but root can write."""
    status = os.stat(workspace)
    return not account.named and status.st_uid == 0 and not account.may(WRITE | SEARCH, status)


def _program(server: CommandServer, environment: Mapping[str, str], cwd: str) -> str:
    command = os.path.join(cwd, server.command) if "/" in server.command else server.command
    if (found := shutil.which(command, path=environment.get("PATH", os.defpath))) is None:
        raise Unavailable(f"MCP server {server.name}: there is no program {server.command!r} in its PATH")
    return found


def _sandbox(
    name: str,
    config: SandboxConfig,
    argv: list[str],
    environment: Mapping[str, str],
    cwd: str,
    ground: Ground,
    installed: Sequence[str] | None,
) -> Sandbox:
    for path in (*config.read, *config.write):
        if not os.path.exists(path):
            raise Unavailable(f"MCP server {name}: its sandbox names {path}, which does not exist")
    workspace, account = ground.workspace, ground.account
    homes = (ground.environ.get("HOME", "/"), *((account.home,) if account is not None else ()))
    found = installed
    if found is None:
        found = Installation(homes, environment.get("PATH", os.defpath), workspace).of(argv[0], argv[1:], cwd)
    # What lies in the workspace is there already, and a link in it must not bring anything else along.
    read, write = _outside(workspace, (*found, *config.read)), _outside(workspace, config.write)
    read, write = (read, (*write, workspace)) if name in ground.writers else ((*read, workspace), write)
    home = environment.get("HOME", "/").rstrip("/")
    return Sandbox(
        read=read,
        write=write,
        hidden=tuple(_inside((*read, *write), ground.protected)),
        network=bool(config.domains),
        cwd=cwd,
        home=home,
        account=account,
        files=((f"{home}/.gitconfig", ground.settings),) if home and ground.settings else (),
    )


def _outside(workspace: str, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if not PurePath(path).is_relative_to(workspace))


def _inside(given: Iterable[str], protected: Iterable[str]) -> Iterator[str]:
    """:returns: the real paths of what is protected and lies in a directory that is given."""
    roots = [os.path.realpath(path) for path in given]
    for path in map(os.path.realpath, protected):
        if any(path != root and PurePath(path).is_relative_to(root) for root in roots) and os.path.lexists(path):
            yield path


_ABSOLUTE = re.compile(r"(?<![\w./-])/[^\s'\":,;()<>]+")


class Missing:
    """
    Finds in a server's error output the files that are there, but not in its sandbox.

    :param server: its name.
    """

    def __init__(self, server: str, sandbox: Sandbox) -> None:
        self._server, self._sandbox = server, sandbox
        self._told: set[str] = set()

    def hint(self, line: str) -> str | None:
        """:returns: what to write in ``mcp-servers.json`` for a file that a line names, once for each."""
        for path in map(os.path.normpath, _ABSOLUTE.findall(line)):
            if path in self._told or is_system(path) or self._sandbox.reaches(path):
                continue
            if os.path.exists(path) and len(self._told) < MISSING_LIMIT:
                self._told.add(path)
                what = f"{path} is outside the sandbox of MCP server {self._server}; to let it read that, write"
                return f'{what} "sandbox": {{"read": ["{path}"]}} in mcp-servers.json'
        return None
