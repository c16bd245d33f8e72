"""
Read and check the configuration files: ``config.toml``, ``policy.toml``, ``mcp-servers.json`` and ``watchers.toml``.

All commands, the daemon, ``config check``, ``doctor`` and ``reload`` use this module.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.account_sections import AccountName, AccountSettings
from ironcurtain.home.agent_names import listed
from ironcurtain.home.faults import wrong
from ironcurtain.home.layout import Home, read_configuration
from ironcurtain.home.lines import Place
from ironcurtain.home.sections import NamedAgent, SecretSource
from ironcurtain.home.settings import BUILT_IN_AGENT, Effective, Settings, load
from ironcurtain.home.user_paths import person_home, user_path
from ironcurtain.llm.backends import BACKENDS, check_backend
from ironcurtain.process.accounts import session_account
from ironcurtain.ssh.addresses import check_address

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.servers_config import ServerConfig
    from ironcurtain.policy.rules import Policy
    from ironcurtain.session.tool_files import ToolFiles


class CheckedFile(msgspec.Struct, frozen=True):
    """
    The result of checking one file.

    :ivar exists: whether it exists; if not, defaults apply.
    :ivar error: the first error in it, or ``None``.
    """

    path: Path
    exists: bool
    error: ConfigurationError | None


def check_files(home: Home, environ: Mapping[str, str]) -> Iterator[CheckedFile]:
    """:returns: the results for the home's files."""
    from ironcurtain.session.tool_files import ToolFiles

    files, user_home = ToolFiles.chosen(home, {}), person_home(environ, os.geteuid())
    readers: dict[Path, Callable[[], object]] = {
        home.config: lambda: read_settings(home.config, environ),
        home.policy: lambda: check_policy(files, user_home),
        home.mcp_servers: lambda: files.load_servers(str(home.path), user_home, environ),
        home.watchers: lambda: _check_watchers(home, environ),
    }
    for path, read in readers.items():
        error = None
        try:
            read()
        except ConfigurationError as e:
            error = e
        yield CheckedFile(path, path.exists(), error)


def _check_watchers(home: Home, environ: Mapping[str, str]) -> None:
    if home.watchers.exists():
        from ironcurtain.operations.watchers import watchers_of  # slow to import, and few homes have any

        watchers_of(home, environ)


def examine_servers(
    home: Home, environ: Mapping[str, str], workspace: str
) -> Iterator[tuple[ServerConfig, str | None]]:
    """
    :param workspace: real path of the workspace for which the servers would start.
    :returns: the servers of the home, and why each of them cannot start; ``None`` for those that can.
    :raises ConfigurationError: the file is wrong.
    """
    from ironcurtain.mcp_proxy.launch import Ground
    from ironcurtain.mcp_proxy.obstacles import obstacle
    from ironcurtain.session.tool_files import ToolFiles

    account, kind = None, None
    with suppress(ConfigurationError):
        settings = read_settings(home.config, environ).settings
        account, kind = session_account(settings.run_as, environ, None, os.geteuid()).switched, settings.sandbox.chosen
    ground = Ground(environ, workspace, account=account, downloads=home.downloads, kind=kind)
    for server in ToolFiles.chosen(home, {}).load_servers(workspace, person_home(environ, os.geteuid()), environ):
        yield server, obstacle(server, ground)


def require_files(home: Home, environ: Mapping[str, str]) -> None:
    """:raises ConfigurationError: one of the home's files is wrong."""
    for checked in check_files(home, environ):
        if checked.error is not None:
            raise checked.error


def check_policy(files: ToolFiles, user_home: str) -> None:
    """
    :param files: which name the policy.
    :param user_home: absolute path of the user's home directory.
    :raises ConfigurationError: the policy is wrong anywhere.
    """
    check_approval(files.load_policy(), user_home)


def check_approval(policy: Policy, user_home: str) -> None:
    """:raises ConfigurationError: what a policy says of the agent of a shell is wrong."""
    if not policy.approval:
        return
    from ironcurtain.shell.approval import read_approval

    read_approval(policy.approval, policy.source, user_home, read_configuration(Path(policy.source)) or "")


def read_settings(path: Path, environ: Mapping[str, str]) -> Effective:
    """
    :param path: the file; it need not exist.
    :returns: the settings in force.
    :raises ConfigurationError: the file cannot be read, a setting is unknown or has a wrong value, or no session could
        start with it.
    """
    text = read_configuration(path)
    effective = load(str(path), text, environ)
    settings = effective.settings
    if settings.providers:
        from ironcurtain.providers.rules import check_providers  # with the formats of all providers, slow to import

        check_providers(settings.providers, str(path), text or "")
    for place, detail in (
        *_wrong_addresses(settings.ssh.listen),
        *_wrong_agent(settings.default_agent),
        *_wrong_backends(settings),
    ):
        name = str(place[0]) if len(place) == 1 else f"{place[0]}.{place[1]}"
        origin = effective.origins[name]
        raise wrong(origin, detail, text or "" if origin == str(path) else "", place)
    try:
        session_account(settings.run_as, environ, None, os.geteuid())
    except ConfigurationError as e:
        origin = effective.origins["run_as"]
        raise wrong(origin, e.detail, text or "" if origin == str(path) else "", ("run_as",)) from None
    for place, detail in _wrong_files(settings):
        origin = effective.origins.get(".".join(map(str, place)), str(path))
        raise wrong(origin, detail, text or "" if origin == str(path) else "", place)
    for place, detail in _wrong_shares(settings.agents.named):
        raise wrong(str(path), detail, text or "", ("agents", *place))
    for place, detail in _wrong_accounts(settings.accounts):
        raise wrong(str(path), detail, text or "", ("accounts", *place))
    return effective


def _wrong_shares(named: Mapping[str, NamedAgent]) -> Iterator[tuple[Place, str]]:
    """:returns: the tables ``[agents.NAME]`` of agents that do not exist, and kinds of files that they cannot share."""
    if not named:
        return
    from ironcurtain.agents.adapter import shareables
    from ironcurtain.agents.registry import installed

    registry = installed()
    for name, settings in named.items():
        if name not in registry.names:
            yield (name,), f"there is no agent of this name; there are: {listed(registry.names)}"
            continue
        offered = sorted({each.name for each in shareables(registry.find(name))})
        words = () if isinstance(settings.share, bool) else settings.share
        for word in words:
            if word not in offered:
                yield (name, "share"), f"{name} cannot share {word!r}, only: {', '.join(offered) or 'nothing'}"


def _wrong_accounts(accounts: Mapping[AccountName, AccountSettings]) -> Iterator[tuple[Place, str]]:
    for name, account in accounts.items():
        if name == "chatgpt" and account.token.has_source:
            advice = "run ironcurtain login chatgpt"
            yield (name, "token"), f"a token alone does not say which ChatGPT account it is: {advice}"
        if detail := _open_to_others(account.file):
            yield (name, "file"), detail


def _wrong_files(settings: Settings) -> Iterator[tuple[Place, str]]:
    """:returns: the files with a secret that others can read, and those with certificates that cannot be used."""
    for place, member in _members(settings):
        if isinstance(member, SecretSource):
            place, detail = (*place, "file"), _open_to_others(member.file)
        elif place[-1] == "witness_key_file":
            detail = _open_to_others(member)
        else:
            detail = _unusable(member) if str(place[-1]).endswith("ca_file") else ""
        if detail:
            yield place, detail


def _members(value: object, place: Place = ()) -> Iterator[tuple[Place, SecretSource | str]]:
    """:returns: each text and each source of a secret in a part of the settings, with its place."""
    if isinstance(value, SecretSource | str):
        yield place, value
    elif isinstance(value, Mapping | msgspec.Struct):
        members = value if isinstance(value, Mapping) else msgspec.structs.asdict(value)
        for name, member in members.items():
            yield from _members(member, (*place, name))


def _unusable(ca_file: str) -> str:
    """:returns: why no certificate of a file can be trusted, in words; empty if they can, or if there is no file."""
    if not ca_file:
        return ""
    from ironcurtain.http.trust import VerifyingPolicy

    try:
        VerifyingPolicy(user_path(ca_file))
    except UsageError as e:
        return str(e)
    except ConfigurationError as e:
        return f"{ca_file} {e.detail}"
    return ""


def _wrong_addresses(addresses: tuple[str, ...]) -> Iterator[tuple[Place, str]]:
    for index, address in enumerate(addresses):
        try:
            check_address(address)
        except UsageError as e:
            yield ("ssh", "listen", index), str(e)


def _wrong_agent(name: str) -> Iterator[tuple[Place, str]]:
    if name in ("", BUILT_IN_AGENT):
        return
    from ironcurtain.agents.registry import installed

    if name not in (names := [BUILT_IN_AGENT, *installed().names]):
        yield ("default_agent",), f"there is no agent {name!r}: choose one of {listed(names)}"


def _wrong_backends(settings: Settings) -> Iterator[tuple[Place, str]]:
    if settings.model.backend not in BACKENDS:
        yield (
            ("model", "backend"),
            f"there is no backend {settings.model.backend!r}: choose one of {', '.join(BACKENDS)}",
        )
    for section, backends in (("model", settings.model.backends), ("shell", settings.shell.backends)):
        for index, backend in enumerate(backends):
            try:
                check_backend(backend)
            except UsageError as e:
                yield (section, "backends", index), str(e)


def _open_to_others(file: str) -> str:
    """:returns: why a file with a secret cannot be used, in words; empty if it can, or if there is none yet."""
    try:
        path = Path(user_path(file))
        mode = path.stat().st_mode if file else 0
    except UsageError as e:
        return str(e)
    except OSError:  # the key may be added later
        return ""
    return f"others can use the key in {path}: chmod 600 {shlex.quote(str(path))}" if stat.S_IMODE(mode) & 0o077 else ""
