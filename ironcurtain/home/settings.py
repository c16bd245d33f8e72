"""
The settings: defaults, overridden by ``config.toml``, then by the environment; with the origin of each value.

The environment variable ``IRONCURTAIN_SECTION_KEY`` overrides the setting ``[section] key``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.account_sections import AccountName, AccountSettings
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.fleet_section import FleetSettings
from ironcurtain.home.github_section import GitHub
from ironcurtain.home.network_section import Network
from ironcurtain.home.registry_sections import REGISTRIES, Registries
from ironcurtain.home.sections import (
    Agent,
    Agents,
    Audit,
    AutoApproval,
    Budget,
    Context,
    EscalationSettings,
    KeySettings,
    LimitSettings,
    Model,
    NamedAgent,
    Price,
    Provider,
    Resources,
    SandboxSettings,
    SecretSource,
    Section,
    SessionSettings,
    Shell,
    Ssh,
    Telemetry,
    Terminal,
    UndoSettings,
)
from ironcurtain.home.structured import check_version, convert, refuse_zeros

FORMAT_VERSION = 1
"""Format version of ``config.toml``; newer ones are refused."""

NO_LITERAL_KEY = (
    "keys are not allowed in this file: give the key's source, as in "
    'key = { env = "ANTHROPIC_API_KEY" }, { command = "pass show anthropic" } or { file = "~/key" }'
)
"""The error for an unusable ``key`` of a provider."""

NO_LITERAL_TOKEN = (
    "tokens are not allowed in this file: give the token's source, as in "
    'token = { env = "CLAUDE_CODE_OAUTH_TOKEN" }, { command = "pass show claude" } or { file = "~/token" }'
)
"""The error for an unusable ``token`` of an account."""

_OF_FILE = (
    "accounts.",
    "container.projects.",
    "providers.",
    "prices.",
    *(f"registries.{name}." for name in REGISTRIES),
)
"""Tables whose members the environment does not override."""

BUILT_IN_AGENT = "builtin"
"""The agent that does not need a container."""


class _AgentTables(Section, frozen=True):
    agents: dict[str, NamedAgent] = msgspec.field(default_factory=dict)


class Settings(Section, frozen=True):
    """
    All settings.

    :param default_agent: the default agent of ``start``; empty: the built-in one.
    :param run_as: name or uid of the account for sessions of root; empty: :mod:`ironcurtain.process.accounts` chooses.
    """

    version: int = FORMAT_VERSION
    default_agent: str = ""
    run_as: str = ""
    model: Model = Model()
    agent: Agent = Agent()
    agents: Agents = Agents()
    session: SessionSettings = SessionSettings()
    escalation: EscalationSettings = EscalationSettings()
    auto_approver: AutoApproval = AutoApproval()
    audit: Audit = Audit()
    budget: Budget = Budget()
    resources: Resources = Resources()
    sandbox: SandboxSettings = SandboxSettings()
    container: ContainerSettings = ContainerSettings()
    limits: LimitSettings = LimitSettings()
    ssh: Ssh = Ssh()
    fleet: FleetSettings = FleetSettings()
    terminal: Terminal = Terminal()
    shell: Shell = Shell()
    context: Context = Context()
    telemetry: Telemetry = Telemetry()
    undo: UndoSettings = UndoSettings()
    registries: Registries = Registries()
    accounts: dict[AccountName, AccountSettings] = msgspec.field(default_factory=dict)
    network: Network = Network()
    github: GitHub = GitHub()
    providers: dict[str, Provider] = msgspec.field(default_factory=dict)
    prices: dict[str, Price] = msgspec.field(default_factory=dict)


class Effective(msgspec.Struct, frozen=True):
    """
    Settings with their origins.

    :param origins: for each dotted name: ``default``, the file's name, or the environment variable's.
    """

    settings: Settings
    origins: Mapping[str, str]


def load(source: str, text: str | None, environ: Mapping[str, str]) -> Effective:
    """
    Assemble the settings; :func:`ironcurtain.configuration.read_settings` also checks the tables of providers.

    :param source: the file's name, for messages and origins.
    :param text: its content; ``None`` if there is no such file.
    :raises ConfigurationError: a setting is unknown or has a wrong value; the message names file, line and field.
    """
    parsed: dict[str, Any] = {}
    if text is not None:
        from ironcurtain.home.parsing import parse_toml

        parsed = parse_toml(source, text)
        refuse_zeros(source, parsed, text)
    check_version(source, parsed, FORMAT_VERSION, text or "")
    for table in ("providers", "registries"):
        _check_keys(source, table, "key", KeySettings, NO_LITERAL_KEY, parsed.get(table), text or "")
    _check_keys(source, "accounts", "token", SecretSource, NO_LITERAL_TOKEN, parsed.get("accounts"), text or "")
    tables = _agent_tables(parsed)
    named: dict[str, NamedAgent] = convert(source, tables, _AgentTables, text or "").agents
    convert(source, parsed, Settings, text or "")
    origins = dict.fromkeys((name for name, _ in flatten(Settings())), "default")
    origins.update(dict.fromkeys((name for name, _ in flatten(parsed)), source))
    origins = {name: origin for name, origin in origins.items() if not isinstance(_value(parsed, name), dict)}
    overridden: dict[str, str] = {}
    for name in list(origins):
        variable = "IRONCURTAIN_" + name.replace(".", "_").upper()
        if name != "version" and not name.startswith(_OF_FILE) and environ.get(variable):
            _put(parsed, name, environ[variable], variable)
            overridden[name] = f"environment variable {variable}"
    try:
        settings: Settings = convert(source, parsed, Settings, text or "")
    except ConfigurationError as e:  # the file alone is right
        blamed = [origin for name, origin in overridden.items() if name.startswith(e.field)]
        raise ConfigurationError(" or ".join(blamed), e.detail, field=e.field) from None
    origins.update(dict.fromkeys((name for name, _ in flatten(tables)), source))
    settings = msgspec.structs.replace(settings, agents=msgspec.structs.replace(settings.agents, named=named))
    return Effective(settings, origins | overridden)


def _agent_tables(parsed: dict[str, Any]) -> dict[str, Any]:
    """:returns: the tables ``[agents.NAME]``, taken out of the parsed file: their names are not those of settings."""
    if not isinstance(agents := parsed.get("agents"), dict):
        return {}
    tables = {name: value for name, value in agents.items() if isinstance(value, dict)}
    parsed["agents"] = {name: value for name, value in agents.items() if name not in tables}
    return {"agents": tables} if tables else {}


def _check_keys(source: str, table: str, field: str, form: type[Section], advice: str, entries: Any, text: str) -> None:
    """
    :param field: of each entry, which must have this form.
    :param entries: of the table with this name.
    :raises ConfigurationError: the file contains a key, which the message does not repeat.
    """
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        key = entry.get(field, {}) if isinstance(entry, dict) else {}
        wrong_fields = [part for part in key if part not in form.__struct_fields__] if isinstance(key, dict) else [""]
        if wrong_fields:
            from ironcurtain.home.faults import wrong

            raise wrong(source, advice, text, (table, name, field, *filter(None, wrong_fields[:1])))


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """:returns: the dotted name and value of every setting in a section or parsed table."""
    members = msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value
    if isinstance(value, Agents):
        members |= members.pop("named")
    if isinstance(members, dict) and (members or not prefix):
        for key, member in members.items():
            yield from flatten(member, f"{prefix}.{key}" if prefix else key)
    elif members != {}:
        yield prefix, members


def _value(parsed: dict[str, Any], name: str) -> Any:
    """:returns: the value of a dotted name in the parsed file; ``None`` if it is not there."""
    value: Any = parsed
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _put(parsed: dict[str, Any], name: str, text: str, variable: str) -> None:
    *sections, key = name.split(".")
    holder, table = _type_of(sections), parsed
    for section in sections:
        table = table.setdefault(section, {})
    field = next(field for field in msgspec.structs.fields(holder) if field.name == key)
    try:
        table[key] = convert(f"environment variable {variable}", text, field.type, strict=False)
    except ConfigurationError as e:
        raise ConfigurationError(e.source, e.detail, field=name) from None


def _type_of(sections: list[str]) -> type[msgspec.Struct]:
    holder: type[msgspec.Struct] = Settings
    for section in sections:
        holder = next(field.type for field in msgspec.structs.fields(holder) if field.name == section)
    return holder
