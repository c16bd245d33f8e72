"""Prepare a server's child process: its command line, environment, sandbox and account."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.needed_download import Download, download_of
from ironcurtain.mcp_proxy.servers_config import CommandServer, SandboxConfig, ServerConfig
from ironcurtain.network.access import PROXY_VARIABLES, listeners
from ironcurtain.policy.desktop import SERVER as DESKTOP
from ironcurtain.process import bounded
from ironcurtain.process.accounts import FREE_UIDS, SEARCH, WRITE, Account
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.search_path import host_environment, required_program
from ironcurtain.sandbox import certificates, cgroups, programs
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.linked_repository import LinkedRepository, settings_text
from ironcurtain.sandbox.pieces import all_names, check_writable, readable_pieces
from ironcurtain.sandbox.spec import Kind, Sandbox, SandboxLimits
from ironcurtain.secrets.redaction import may_be_secret

INHERITED = ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "TMPDIR")
"""Environment variables that servers inherit, besides ``LC_*``. Other variables may contain keys."""

CAUTIOUS = {"PYTHONSAFEPATH": "1"}
"""
Servers can start in the workspace, where agents write, so Python must not import modules from there (``python -m``
would). A server's configured environment overrides this.
"""

APART = "/"
"""
Where servers with secrets or a network start: some read settings such as ``.env`` from their working directory, which
an agent would write if that was its workspace.
"""

OWN_SERVERS = tuple(("-I", "-m", f"ironcurtain.servers.{name}") for name in ("files", "git_remote", "desktop"))
"""
Beginnings of the arguments of IronCurtain's own servers. The first does not follow links and runs nothing from the
workspace; the second runs git in sandboxes; the third operates the desktop, which no sandbox could have.
"""

FOR_DESKTOP = (
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"),
    *("DBUS_SESSION_BUS_ADDRESS", "PULSE_SERVER", "SWAYSOCK"),
)
"""Variables with which a program finds the desktop; only IronCurtain's server for it has them."""

FOR_PYTHON = ("PATH", "HOME")
"""What that server has besides."""

FOR_CREDENTIALS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
"""Variables with which git's credential helpers and ssh find the user's agents; for IronCurtain's git server."""

KIND_VARIABLE = "IRONCURTAIN_SANDBOX_KIND"
"""
Tells IronCurtain's servers for git and the desktop what implements their sandboxes; also overrides the setting in
``config.toml``.
"""

_TRIAL = '[ -x "$1" ] || exit 3; cd "$2" || exit 4'
TRIAL_SECONDS = 10.0


class Launch(msgspec.Struct, frozen=True):
    """
    :param argv: the command line; its first part is a path.
    :param inputs: data that the program reads from descriptors other than the standard ones, by number.
    :param sandbox: what it may access; ``None`` if it runs outside any sandbox.
    :param own: whether it is one of IronCurtain's, whose last line says why it ended.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    inputs: Mapping[int, bytes] = msgspec.field(default_factory=dict)
    sandbox: Sandbox | None = None
    own: bool = False


class Ground(msgspec.Struct, frozen=True):
    """
    The environment of a session's servers.

    :param environ: the environment of this process.
    :param workspace: real path of the session's workspace, the default working directory of servers without secrets
        and network.
    :param protected: absolute paths that servers cannot see, unless their sandbox configuration names exactly these.
        Those in the workspace do not exist.
    :param account: the account that servers run as, if not that of this process, which is root then.
    :param settings: returns the content of ``.gitconfig`` in the home of sandboxed servers.
    :param writers: the servers with tools that change files, which may write to the workspace.
    :param kind: what implements sandboxes; ``None``: the strongest kind that works.
    :param repository: the workspace's git repository, if it is elsewhere and may be mounted.
    :param downloads: an existing directory for programs that ``npx`` and ``uvx`` install; ``None``: they download them
        at each start.
    :param authority: the certificate, in PEM, of the proxy for sandboxes with a network; ``None``: there is no proxy.
    """

    environ: Mapping[str, str]
    workspace: str
    protected: tuple[str, ...] = ()
    account: Account | None = None
    settings: Callable[[], bytes] = bytes
    writers: frozenset[str] = frozenset()
    downloads: Path | None = None
    kind: Kind | None = None
    repository: LinkedRepository | None = None
    authority: bytes | None = None


def small_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """:returns: the few variables of the environment that servers get."""
    return {name: value for name, value in environ.items() if name in INHERITED or name.startswith("LC_")}


def prepare(
    server: CommandServer, secrets: Mapping[str, str], ground: Ground, installed: Sequence[str] | None = None
) -> Launch:
    """
    :param secrets: the output of the server's ``env_command``.
    :param installed: paths that its program needs, if known; otherwise they are searched for.
    :raises Unavailable: its command, or a path that its sandbox needs, does not exist or is not accessible to the
        account.
    """
    environment, cwd = _environment(server, ground, secrets), _cwd(server, ground)
    argv = [program_of(server, ground, secrets), *server.args]
    account, setsid = ground.account, required_program("setsid")
    if is_own(server):
        if is_for_desktop(server):
            given = {name: ground.environ[name] for name in FOR_DESKTOP if name in ground.environ}
            given |= {name: environment[name] for name in FOR_PYTHON if name in environment}
            environment = {**given, **server.environment, **secrets}
        environment["LC_ALL"] = "C.UTF-8"  # in messages, names of files are UTF-8
        if server.args[:3] == OWN_SERVERS[0]:
            argv += [f"--hide={path}" for path in sorted(all_names(ground.protected))]
        elif server.args[:3] == OWN_SERVERS[1] and ground.repository is not None:
            argv.insert(len(OWN_SERVERS[1]) + 1, f"--repository={ground.repository.directory}")
        if account is not None and (is_for_desktop(server) or not is_for_root(ground.workspace, account)):
            # It opens its directories as root, and switches to the account before its first call.
            argv[len(OWN_SERVERS[0]) + 1 : len(OWN_SERVERS[0]) + 1] = [f"--account={account.ids}"]
        elif server.args[:3] == OWN_SERVERS[1]:
            environment |= {name: ground.environ[name] for name in FOR_CREDENTIALS if name in ground.environ}
        if server.args[:3] != OWN_SERVERS[0] and ground.kind is not None:
            environment[KIND_VARIABLE] = ground.kind.value
        line = cgroups.limited(argv, SandboxLimits()) if server.args[:3] == OWN_SERVERS[1] else argv
        return Launch((setsid, *line), environment, cwd, own=True)
    if server.sandbox is None:
        line = argv if account is None else _as_somebody(server, argv, cwd, account)
        return Launch((setsid, *line), environment, cwd)
    sandbox = _sandbox(server.name, server.sandbox, argv, environment, cwd, ground, installed)
    environment = {name: value for name, value in environment.items() if name != "TMPDIR"}
    environment["HOME"] = sandbox.home or "/tmp"
    try:
        sandbox = replace(sandbox, kind=programs.kind_of(sandbox))
        inputs = programs.inputs(sandbox)
        line = programs.command(sandbox, argv, {number: number for number in inputs})
    except Unavailable as e:
        raise Unavailable(
            f"MCP server {server.name} runs in a sandbox, and {e}; 'ironcurtain doctor' says more. To run it "
            'outside, where it may do all that its account may, write "sandbox": "none" in mcp-servers.json'
        ) from None
    return Launch((setsid, *line), environment, "/", inputs, sandbox)


def is_own(server: CommandServer) -> bool:
    """:returns: whether a server is one of IronCurtain's, started with this Python."""
    program = shutil.which(server.command) or server.command
    same = os.path.realpath(program) == os.path.realpath(sys.executable)
    ours = same and os.path.dirname(program) == os.path.dirname(sys.executable)
    return ours and any(server.args[: len(own)] == own for own in OWN_SERVERS)


def serves_files(server: ServerConfig) -> bool:
    """:returns: whether a server is IronCurtain's file server."""
    return isinstance(server, CommandServer) and is_own(server) and server.args[:3] == OWN_SERVERS[0]


def is_for_desktop(server: CommandServer) -> bool:
    """:returns: whether a server is IronCurtain's for the desktop."""
    return is_own(server) and server.args[:3] == OWN_SERVERS[2]


def account_notice(account: Account | None, workspace: str, as_root: bool = False) -> str:
    """
    :param account: the account that servers run as; ``None``: root, as ``run_as`` says.
    :param as_root: whether they cannot run as that account in their sandboxes.
    :returns: for root, a sentence that says as whom the servers of a session run.
    """
    if account is None:
        return "WARNING: run_as is root, so MCP servers run as root: those outside a sandbox may do everything"
    if as_root:
        return "MCP servers run as root without any capability, since root may not become another account here"
    if is_for_root(workspace, account):
        return f"MCP servers run as {account}, but the file server as root, since root owns the workspace {workspace}"
    if account.uid in FREE_UIDS:
        return f"MCP servers run as {account}, which has no account; set run_as in config.toml to choose one"
    return f"MCP servers run as {account}"


def _inherited(ground: Ground) -> dict[str, str]:
    ours, account = small_environment(ground.environ), ground.account
    if account is None:
        return ours
    theirs = {"HOME": account.home, "USER": account.name}
    return {name: theirs.get(name, value) for name, value in ours.items() if name != "TMPDIR"} | theirs


def _as_somebody(server: CommandServer, argv: list[str], cwd: str, account: Account) -> list[str]:
    trial = account.command(["/bin/sh", "-c", _TRIAL, "sh", argv[0], cwd])
    try:
        status = bounded.run(trial, Bounds(TRIAL_SECONDS)).status
    except Unfinished as e:
        raise Unavailable(f"the trial of whether {account} can run MCP server {server.name} {e.why}") from None
    if status:
        what = f"enter {cwd}" if status == 4 else f"execute {argv[0]}"
        raise Unavailable(
            f"{account}, as whom MCP server {server.name} runs, cannot {what}: permit it, let the server run in a "
            "sandbox (where what it needs is within reach), or set run_as in config.toml"
        )
    return account.command(argv)


def is_for_root(workspace: str, account: Account) -> bool:
    """:returns: whether a directory belongs to root, and only root can write it."""
    status = os.stat(workspace)
    return not account.named and status.st_uid == 0 and not account.may(WRITE | SEARCH, status)


def _environment(server: CommandServer, ground: Ground, secrets: Mapping[str, str]) -> dict[str, str]:
    inherited = _inherited(ground)
    if server.sandbox is None or _starts_apart(server):  # with more rights than the agent, which must not redirect it
        inherited = host_environment(inherited, ground.workspace)
    return {**inherited, **CAUTIOUS, **_network_variables(server, ground), **server.environment, **secrets}


def _cwd(server: CommandServer, ground: Ground) -> str:
    return APART if _starts_apart(server) else _base(server, ground)


def _base(server: CommandServer, ground: Ground) -> str:
    """:returns: the directory to which a server's relative command belongs."""
    return os.path.normpath(os.path.join(ground.workspace, server.cwd)) if server.cwd else ground.workspace


def _starts_apart(server: CommandServer) -> bool:
    """:returns: whether a server that names no working directory has something that an agent must not redirect."""
    if server.cwd or is_own(server):
        return False
    secret = any(may_be_secret(name, value) for name, value in server.environment.items())
    has_network = server.sandbox is None or bool(server.sandbox.access)
    return has_network or secret or bool(server.environment_commands or server.reading.secrets)


def program_of(server: CommandServer, ground: Ground, secrets: Mapping[str, str] = MappingProxyType({})) -> str:
    """
    :param secrets: the output of the server's ``env_command``, which can replace its ``PATH``.
    :returns: path of the program that a server's command names.
    :raises Unavailable: there is none, or it cannot be executed, or the server's ``cwd`` is not a directory, or it
        starts elsewhere than its arguments suppose, or its name is not the one under which it is judged.
    """
    if is_for_desktop(server) and server.name != DESKTOP:
        raise Unavailable(
            f"MCP server {server.name}: input to terminals is asked about, and tables of the policy apply, only where"
            f" this server is called {DESKTOP}: name it so in mcp-servers.json"
        )
    cwd, command = _base(server, ground), server.command
    if (word := _relative_file(server, ground)) is not None:
        raise Unavailable(
            f"MCP server {server.name}: it has secrets or a network, so it does not start in the workspace, where an "
            f'agent could redirect it, and does not find {word}: give that as an absolute path, or write "cwd"'
        )
    if not os.path.isdir(cwd):
        raise Unavailable(f"MCP server {server.name}: its cwd {cwd} is not a directory")
    path = _environment(server, ground, secrets).get("PATH", os.defpath)
    # A relative entry of the PATH would be in the workspace, where agents write.
    places = [""] if "/" in command else [place for place in path.split(os.pathsep) if os.path.isabs(place)]
    found = [os.path.join(cwd, place, command) for place in places]
    if (program := next((each for each in found if shutil.which(each)), None)) is not None:
        return program
    why = f"there is no program {command!r}" + ("" if "/" in command else " in its PATH")
    for each in found:
        if os.path.isdir(each):
            why = f"{each} is a directory, not a program"
        elif os.path.exists(each):
            why = f"{each} is not executable: chmod +x {shlex.quote(each)}"
    raise Unavailable(f"MCP server {server.name}: {why}")


def _relative_file(server: CommandServer, ground: Ground) -> str | None:
    """:returns: an argument that names something in the workspace, of a server that does not start there."""
    if not _starts_apart(server):
        return None
    named = (word for word in server.args if word[:1] not in ("", "/", "-") and ("/" in word or "." in word))
    return next((word for word in named if os.path.lexists(os.path.join(ground.workspace, word))), None)


def needed_download(server: CommandServer, ground: Ground) -> Download | None:
    """:returns: what to download before a server starts, since its sandbox cannot; ``None`` if nothing."""
    return download_of(server) if server.sandbox is not None and ground.downloads is not None else None


def _sandbox(
    name: str,
    config: SandboxConfig,
    argv: list[str],
    environment: Mapping[str, str],
    cwd: str,
    ground: Ground,
    installed: Sequence[str] | None,
) -> Sandbox:
    if config.access.anything and ground.authority is None:
        raise Unavailable(f'MCP server {name}: list the hosts that it needs: {{"network": ["HOST", "HOST:PORT"]}}')
    for path in (*config.read, *config.write):
        if not os.path.exists(path):
            raise Unavailable(f"MCP server {name}: its sandbox names {path}, which does not exist")
    workspace, account = ground.workspace, ground.account
    homes = (ground.environ.get("HOME", "/"), *((account.home,) if account is not None else ()))
    found = installed
    if found is None:
        path = environment.get("PATH", os.defpath)
        searched = Installation(homes, path, workspace, environment).of(argv[0], argv[1:], cwd)
        found = [place for place in searched if not _is_in(place, ground.protected)]
    # Files in the workspace exist already, and a link there must not add another path.
    read, write = _outside(workspace, (*found, *config.read)), _outside(workspace, config.write)
    names = all_names(ground.protected)
    try:
        for path in write:
            check_writable(path, names)
        read = tuple(piece for path in read for piece in readable_pieces(path, names, workspace))
    except Unavailable as e:
        raise Unavailable(f"MCP server {name}: in its sandbox, {e}") from None
    read, write = (read, (*write, workspace)) if name in ground.writers else ((*read, workspace), write)
    settings = ground.settings()
    if (repository := ground.repository) is not None:
        more_read, more_write = repository.mounts(name in ground.writers)
        read, write, settings = (*read, *more_read), (*write, *more_write), settings + settings_text()
    home = environment.get("HOME", "/").rstrip("/")
    return Sandbox(
        read=read,
        write=write,
        listeners=listeners(config.access, ground.authority is not None),
        cwd=cwd,
        home=home,
        account=account,
        files=(*(((f"{home}/.gitconfig", settings),) if home and settings else ()), *_network_files(config, ground)),
        kind=ground.kind,
    )


def _network_files(config: SandboxConfig, ground: Ground) -> tuple[tuple[str, bytes], ...]:
    if not config.access:
        return ()
    trusted = () if ground.authority is None else (certificates.bundle(ground.authority),)
    return (*config.access.files(), *trusted)


def _network_variables(server: CommandServer, ground: Ground) -> dict[str, str]:
    if server.sandbox is None or not server.sandbox.access or ground.authority is None:
        return {}
    place, _ = certificates.bundle(ground.authority)
    return {**PROXY_VARIABLES, **certificates.variables(place)}


def _outside(workspace: str, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if not PurePath(path).is_relative_to(workspace))


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(PurePath(os.path.realpath(path)).is_relative_to(os.path.realpath(place)) for place in places)
