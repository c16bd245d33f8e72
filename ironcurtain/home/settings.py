"""
The settings: defaults, overridden by ``config.toml``, then by the environment; with the origin of each value.

The environment variable ``IRONCURTAIN_SECTION_KEY`` overrides the setting ``[section] key``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.structured import check_version, convert, parse_toml, wrong

FORMAT_VERSION = 1
"""Format version of ``config.toml``; newer ones are refused."""

REPEATED_CALLS = 20
"""
Default limit on equal calls of one client per minute: a client that waits for something calls every few seconds, and a
loop exceeds the limit at once.
"""

NO_LITERAL_KEY = (
    "keys are not allowed in this file: give the key's source, as in "
    'key = { env = "ANTHROPIC_API_KEY" }, { command = "pass show anthropic" } or { file = "~/key" }'
)
"""The error for an unusable ``key`` of a provider."""

BUILT_IN_AGENT = "builtin"
"""The agent that does not need a container."""

Positive = Annotated[float, msgspec.Meta(gt=0, lt=1e15)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, lt=1e15)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class KeySettings(_Section, frozen=True):
    """
    The source of a provider's real key: exactly one of three; a literal key is refused.

    :param header: the request header that carries it.
    :param prefix: prefix of its fake counterpart.
    :param env: name of an environment variable.
    :param command: a command line that prints it, run without a shell.
    :param file: a file with mode 0600 that contains it.
    """

    header: str = ""
    prefix: str = ""
    env: str = ""
    command: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.env, self.command, self.file))) > 1:
            raise ValueError("give one of env, command and file")


class Provider(_Section, frozen=True):
    """
    A model API.

    :param base_url: a gateway to use instead of the provider's own address. Only this may be in a private network or on
        this machine.
    :param ca_file: PEM certificates to trust besides the system's.
    """

    host: str = ""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 443
    endpoints: tuple[str, ...] = ()
    key: KeySettings = KeySettings()
    base_url: str = ""
    ca_file: str = ""


class Model(_Section, frozen=True):
    """
    The model of the built-in agent.

    :param backend: ``anthropic``, ``scripted`` or ``subprocess``.
    :param name: the provider's name of the model; empty: the provider's default.
    :param max_tokens: maximum tokens of one answer.
    :param script: file of the scripted provider.
    :param command: command line of the provider ``subprocess``, run without a shell.
    :param stall_seconds: time limit for silence of the model.
    """

    backend: Literal["anthropic", "scripted", "subprocess"] = "anthropic"
    name: str = ""
    max_tokens: Count = 8192
    script: str = ""
    command: str = ""
    stall_seconds: Positive = 120.0


class Agent(_Section, frozen=True):
    """:param max_steps: maximum number of model requests for one message to the built-in agent."""

    max_steps: Count = 10


class Agents(_Section, frozen=True):
    """
    Agents in containers.

    :param turn_seconds: time limit for a message, including waits for people; then the program is ended. An hour: real
        tasks take many minutes, and a program that hangs must be ended.
    """

    turn_seconds: Positive = 3600.0


class EscalationSettings(_Section, frozen=True):
    """
    :param timeout_seconds: how long a person has to answer.
    :param max_waiting: maximum number of pending escalations of one session; further calls fail at once.
    """

    timeout_seconds: Annotated[float, msgspec.Meta(ge=1, le=86400 * 7)] = 300.0
    max_waiting: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 32


class Audit(_Section, frozen=True):
    """:param durability: which calls wait until their record is on disk."""

    durability: Literal["escalated", "every-call"] = "escalated"


class Budget(_Section, frozen=True):
    """
    Limits of one session: steps (model requests), seconds of work, tokens, US dollars. Without a value there is no
    limit.
    """

    steps: Positive | None = None
    seconds: Positive | None = None
    tokens: Positive | None = None
    cost: Positive | None = None


class Price(_Section, frozen=True):
    """US dollars for a million tokens of a model, if the built-in list lacks it or is outdated."""

    input: NotNegative
    output: NotNegative
    cache_read: NotNegative = 0.0
    cache_write: NotNegative = 0.0


class Resources(_Section, frozen=True):
    """Limits of one container: MiB of memory, processors, processes."""

    memory_mb: Annotated[int, msgspec.Meta(ge=256)] = 4096
    cpus: Positive = 2.0
    pids: Annotated[int, msgspec.Meta(ge=16)] = 512


class LimitSettings(_Section, frozen=True):
    """
    :param max_concurrent_sessions: maximum number of container sessions in this home.
    :param repeated_calls: how often one client may make the same call within a minute.
    """

    max_concurrent_sessions: Count = 5
    repeated_calls: Count = REPEATED_CALLS


class Ssh(_Section, frozen=True):
    """
    Where the daemon listens for SSH.

    :param port: 0 for nowhere.
    :param listen: IP addresses, and systemd's sockets. An address that this machine does not have is skipped.
    """

    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 2222
    listen: tuple[str, ...] = ("127.0.0.1", "::1")


class Terminal(_Section, frozen=True):
    """
    Sessions with a terminal.

    :param record: whether their output is recorded.
    :param recording_mb: maximum size in MB of one recording.
    """

    record: bool = True
    recording_mb: Positive = 16.0


class Shell(_Section, frozen=True):
    """
    The agent in the user's own shell.

    :param command: the shell, with arguments; empty: ``$SHELL``.
    :param integration: whether marks are added to its prompt.
    :param confirm_mode: what a person confirms besides what the policy asks for: nothing, each step, or the plan.
    :param backends: models in the order in which they are asked, as ``--backend`` has them; none: that of ``[model]``.
    :param max_plan_steps: longer plans are refused.
    :param output_bytes: most bytes of a command's output that are kept.
    :param command_seconds: how long one command may take, as ``plan_seconds`` says it of a whole plan.
    :param max_tokens_per_session: tokens, in and out together.
    :param hook_seconds: how long one hook may take.
    """

    command: str = ""
    integration: bool = True
    confirm_mode: Literal["auto", "each", "plan"] = "plan"
    backends: tuple[str, ...] = ()
    max_plan_steps: Count = 50
    output_bytes: Annotated[int, msgspec.Meta(ge=1000)] = 1_000_000
    command_seconds: Positive = 300.0
    plan_seconds: Positive = 1800.0
    max_tokens_per_session: Count = 100_000
    hook_seconds: Positive = 10.0


class Context(_Section, frozen=True):
    """
    What the model of a shell is told besides the instruction.

    :param max_terminal_lines: most lines of the terminal.
    :param include_env: variables of the environment; never those whose names say that they are secret.
    :param scrub: regular expressions of text that is to be replaced before it leaves this machine.
    """

    max_terminal_lines: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 200
    include_env: tuple[str, ...] = ("PATH", "HOME", "USER", "SHELL", "TERM", "LANG")
    scrub: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.scrub:
            try:
                empty = re.compile(pattern).match("")
            except re.error as e:
                raise ValueError(f"{pattern!r} is no regular expression: {e}") from None
            if empty:
                raise ValueError(f"the regular expression {pattern!r} fits everywhere: it must not match empty text")


class Telemetry(_Section, frozen=True):
    """
    Traces of what the agent of a shell did.

    :param enabled: whether they are written.
    :param path: of the file; empty: ``traces.jsonl`` in the home.
    :param share_with_backend: whether the model's provider is told the ids of a trace.
    :param anonymize: whether instructions and commands are left out.
    :param retain_days: how long the file keeps them.
    """

    enabled: bool = True
    sink: Literal["file", "journald", "syslog", "stdout"] = "file"
    path: str = ""
    share_with_backend: bool = False
    anonymize: bool = True
    retain_days: Count = 30


class Settings(_Section, frozen=True):
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
    escalation: EscalationSettings = EscalationSettings()
    audit: Audit = Audit()
    budget: Budget = Budget()
    resources: Resources = Resources()
    limits: LimitSettings = LimitSettings()
    ssh: Ssh = Ssh()
    terminal: Terminal = Terminal()
    shell: Shell = Shell()
    context: Context = Context()
    telemetry: Telemetry = Telemetry()
    providers: dict[str, Provider] = {}
    prices: dict[str, Price] = {}


@dataclass(frozen=True, slots=True)
class Effective:
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
    parsed = parse_toml(source, text) if text is not None else {}
    check_version(source, parsed, FORMAT_VERSION, text or "")
    _check_keys(source, parsed.get("providers"), text or "")
    convert(source, parsed, Settings, text or "")
    origins = dict.fromkeys((name for name, _ in flatten(Settings())), "default")
    origins.update(dict.fromkeys((name for name, _ in flatten(parsed)), source))
    for name in list(origins):
        variable = "IRONCURTAIN_" + name.replace(".", "_").upper()
        if name != "version" and name.partition(".")[0] not in ("providers", "prices") and environ.get(variable):
            _put(parsed, name, environ[variable], variable)
            origins[name] = f"environment variable {variable}"
    return Effective(convert(source, parsed, Settings, text or ""), origins)


def _check_keys(source: str, providers: Any, text: str) -> None:
    """:raises ConfigurationError: the file contains a key, which the message does not repeat."""
    for name, provider in providers.items() if isinstance(providers, dict) else ():
        key = provider.get("key", {}) if isinstance(provider, dict) else {}
        wrong_fields = (
            [field for field in key if field not in KeySettings.__struct_fields__] if isinstance(key, dict) else [""]
        )
        if wrong_fields:
            raise wrong(source, NO_LITERAL_KEY, text, ("providers", name, "key", *filter(None, wrong_fields[:1])))


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """:returns: the dotted name and value of every setting in a section or parsed table."""
    members = msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value
    if isinstance(members, dict) and (members or not prefix):
        for key, member in members.items():
            yield from flatten(member, f"{prefix}.{key}" if prefix else key)
    elif members != {}:
        yield prefix, members


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
