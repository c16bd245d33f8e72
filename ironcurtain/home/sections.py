"""The tables of ``config.toml``, with their defaults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from ironcurtain.http.addresses import is_base_url

if TYPE_CHECKING:
    from ironcurtain.sandbox.spec import Kind

REPEATED_CALLS = 20
"""
Default limit on equal calls of one client per minute: a client that waits for something calls every few seconds, and a
loop exceeds the limit at once.
"""

Positive = Annotated[float, msgspec.Meta(gt=0, lt=1e15)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, lt=1e15)]
Count = Annotated[int, msgspec.Meta(ge=1)]
CloudName = Annotated[str, msgspec.Meta(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?\Z")]
"""A name that clouds put into names of hosts and into paths."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of ``config.toml``."""


class SecretSource(Section, frozen=True):
    """
    The source of a secret: at most one of three; a literal one is refused.

    :param env: name of an environment variable.
    :param command: a command line that prints it, run without a shell.
    :param file: a file with mode 0600 that contains it.
    """

    env: str = ""
    command: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.env, self.command, self.file))) > 1:
            raise ValueError("give one of env, command and file")

    @property
    def has_source(self) -> bool:
        """Whether one of the three is given."""
        return bool(self.env or self.command or self.file)


class KeySettings(SecretSource, frozen=True):
    """
    The source of a provider's real key.

    :param header: the request header that carries it.
    :param prefix: prefix of its fake counterpart.
    """

    header: str = ""
    prefix: str = ""


class Provider(Section, frozen=True):
    """
    A model API.

    :param base_url: a gateway to use instead of the provider's own address. Only this may be in a private network or on
        this machine.
    :param ca_file: PEM certificates to trust besides the system's.
    :param region: of the cloud, for ``bedrock`` and ``vertex``.
    :param project: of the cloud, for ``vertex``.
    :param resource: name of the resource, for ``foundry``.
    """

    host: str = ""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 443
    endpoints: tuple[str, ...] = ()
    key: KeySettings = KeySettings()
    base_url: str = ""
    ca_file: str = ""
    region: CloudName = ""
    project: CloudName = ""
    resource: CloudName = ""


class Model(Section, frozen=True):
    """
    The model of the built-in agent, and of the shell.

    :param backend: one of :data:`ironcurtain.llm.backends.BACKENDS`.
    :param backends: models in the order in which they are asked, as ``--backend`` has them; none: ``backend``.
    :param name: the provider's name of the first model; empty: the provider's default.
    :param max_tokens: maximum tokens of one answer.
    :param script: file of the scripted provider.
    :param command: command line of the provider ``subprocess``, run without a shell.
    :param stall_seconds: time limit for silence of the model.
    """

    backend: str = "anthropic"
    backends: tuple[str, ...] = ()
    name: str = ""
    max_tokens: Count = 8192
    script: str = ""
    command: str = ""
    stall_seconds: Positive = 120.0


class Agent(Section, frozen=True):
    """:param max_steps: maximum number of model requests for one message to the built-in agent."""

    max_steps: Count = 10


class NamedAgent(Section, frozen=True):
    """
    One agent in containers, the table ``[agents.NAME]``.

    :param share: which of the user's own files for this agent it may read: all that it can share, none, or these kinds.
    """

    share: bool | tuple[str, ...] = False


class Agents(Section, frozen=True):
    """
    Agent programs.

    :param sandbox: where they run; empty: in a container, or with bubblewrap where there is no Docker Engine.
    :param turn_seconds: time limit for a message, including waits for people; then the program is ended. An hour: real
        tasks take many minutes, and a program that hangs must be ended.
    :param longest_wait_seconds: end a message at once if a limit of the account that pays for the model ends later;
        ``None``: the agent may wait.
    :param accounts: where several accounts could pay for an agent's model, the first of these that can; without one of
        them, nothing is chosen.
    :param sockets: how containers reach the proxies: ``unix``, by mounted sockets; ``tcp``, through a sidecar;
        ``auto``, through a sidecar where mounted sockets cannot be used.
    :param named: settings of single agents, by name.
    """

    sandbox: Literal["", "container", "bubblewrap"] = ""
    turn_seconds: Positive = 3600.0
    longest_wait_seconds: Positive | None = None
    accounts: tuple[str, ...] = ()
    sockets: Literal["auto", "unix", "tcp"] = "auto"
    named: dict[str, NamedAgent] = msgspec.field(default_factory=dict)


class EscalationSettings(Section, frozen=True):
    """
    :param timeout_seconds: how long a person has to answer.
    :param max_waiting: maximum number of pending escalations of one session; further calls fail at once.
    """

    timeout_seconds: Annotated[float, msgspec.Meta(ge=1, le=86400 * 7)] = 300.0
    max_waiting: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 32


class AutoApproval(Section, frozen=True):
    """
    The auto-approver: a model that may approve what the user's own words plainly ask for.

    :param backend: as ``--backend`` has it; empty: that of ``[model]``.
    :param model: the provider's name of the model; empty: the provider's default.
    :param max_per_session: how often the model is asked in one session.
    """

    enabled: bool = False
    backend: str = ""
    model: str = ""
    max_per_session: Count = 20


class Audit(Section, frozen=True):
    """
    :param durability: which calls wait until their record is on disk.
    :param witness: places outside the home that get the signed heads of logs: ``file:/PATH``, ``syslog``, ``journald``,
        and one ``https://`` address.
    :param witness_key_file: a file with mode 0600 that contains the bearer token for the ``https://`` address.
    :param witness_ca_file: PEM certificates to trust for it besides the system's.
    """

    durability: Literal["escalated", "every-call"] = "escalated"
    witness: tuple[str, ...] = ()
    witness_key_file: str = ""
    witness_ca_file: str = ""

    def __post_init__(self) -> None:
        for place in self.witness:
            https = place.startswith("https://") and is_base_url(place)
            if place not in ("syslog", "journald") and not place.startswith("file:/") and not https:
                raise ValueError(
                    f'{place!r} is no witness: write "file:/PATH", "syslog", "journald" or "https://HOST[:PORT]/PATH"'
                )
        if len([place for place in self.witness if place.startswith("https://")]) > 1:
            raise ValueError("give one https:// witness at most: its key is for no other")


class Budget(Section, frozen=True):
    """
    Limits of one session: steps (model requests), seconds of work, tokens, US dollars. Without a value there is no
    limit.
    """

    steps: Positive | None = None
    seconds: Positive | None = None
    tokens: Positive | None = None
    cost: Positive | None = None


class Price(Section, frozen=True):
    """US dollars for a million tokens of a model, if the built-in list lacks it or is outdated."""

    input: NotNegative
    output: NotNegative
    cache_read: NotNegative = 0.0
    cache_write: NotNegative = 0.0


class Resources(Section, frozen=True):
    """Limits of one container: MiB of memory, processors, processes."""

    memory_mb: Annotated[int, msgspec.Meta(ge=256)] = 4096
    cpus: Positive = 2.0
    pids: Annotated[int, msgspec.Meta(ge=16)] = 512


class SandboxSettings(Section, frozen=True):
    """
    The sandboxes of MCP servers, git, downloads and the interpreter.

    :param kind: what implements them; empty: the strongest kind that works on this machine.
    """

    kind: Literal["", "bubblewrap", "container", "landlock"] = ""

    @property
    def chosen(self) -> Kind | None:
        """The kind; ``None`` for the strongest that works."""
        from ironcurtain.sandbox.spec import Kind  # a shell that starts does not need it

        return Kind(self.kind) if self.kind else None


class LimitSettings(Section, frozen=True):
    """
    :param max_concurrent_sessions: maximum number of container sessions in this home.
    :param repeated_calls: how often one client may make the same call within a minute.
    """

    max_concurrent_sessions: Count = 5
    repeated_calls: Count = REPEATED_CALLS


class Ssh(Section, frozen=True):
    """
    Where the daemon listens for SSH.

    :param port: 0 for nowhere.
    :param listen: IP addresses, and systemd's sockets. An address that this machine does not have is skipped.
    """

    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 2222
    listen: tuple[str, ...] = ("127.0.0.1", "::1")


class Terminal(Section, frozen=True):
    """
    Sessions with a terminal.

    :param record: whether their output is recorded.
    :param recording_mb: maximum size in MB of one recording.
    """

    record: bool = True
    recording_mb: Positive = 16.0


class Shell(Section, frozen=True):
    """
    The agent in the user's own shell.

    :param command: the shell, with arguments; empty: ``$SHELL``.
    :param integration: whether marks are added to its prompt.
    :param confirm_mode: what a person confirms besides what the policy asks for: nothing, each step, or the plan.
    :param history: whether the shell keeps commands of the agent in its history.
    :param backends: models in the order in which they are asked, as ``--backend`` has them; none: those of ``[model]``.
    :param max_plan_steps: longer plans are refused.
    :param output_bytes: most bytes of a command's output that are kept.
    :param command_seconds: how long one command may take, as ``plan_seconds`` says it of a whole plan.
    :param max_tokens_per_session: tokens, in and out together.
    :param hook_seconds: how long one hook may take.
    :param share_policy: whether agents that it starts on other machines are told what it may do. Commands of this shell
        can read that, and all hosts that you log in to with ssh from it.
    """

    command: str = ""
    integration: bool = True
    share_policy: bool = True
    confirm_mode: Literal["auto", "each", "plan"] = "plan"
    history: bool = False
    backends: tuple[str, ...] = ()
    max_plan_steps: Count = 50
    output_bytes: Annotated[int, msgspec.Meta(ge=1000)] = 1_000_000
    command_seconds: Positive = 300.0
    plan_seconds: Positive = 1800.0
    max_tokens_per_session: Count = 100_000
    hook_seconds: Positive = 10.0


class Context(Section, frozen=True):
    """
    What the model of a shell is told besides the instruction.

    :param max_terminal_lines: most lines of the terminal.
    :param include_env: variables of the environment; never those whose names say that they are secret.
    :param requery_env: whether the shell is asked for them at each instruction.
    :param scrub: regular expressions of text that is to be replaced before it leaves this machine.
    """

    max_terminal_lines: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 200
    include_env: tuple[str, ...] = ("PATH", "HOME", "USER", "SHELL", "TERM", "LANG")
    requery_env: bool = False
    scrub: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in self.scrub:
            try:
                empty = re.compile(pattern).match("")
            except re.error as e:
                raise ValueError(f"{pattern!r} is no regular expression: {e}") from None
            if empty:
                raise ValueError(f"the regular expression {pattern!r} fits everywhere: it must not match empty text")


class SessionSettings(Section, frozen=True):
    """
    Conversations of the built-in agent that become too long for its model, and old sessions.

    :param context_strategy: what becomes of the oldest turns; ``none``: the message fails.
    :param context_turns: number of turns that ``sliding`` keeps.
    :param context_tokens: the model's context; ``None``: as known for the model.
    :param prune_on_start: whether files of old sessions are removed when a process that runs sessions starts, but for
        audit logs.
    :param prune_days: how many days ago such a session must have ended.
    """

    context_strategy: Literal["none", "truncate", "summarise", "sliding"] = "none"
    context_turns: Count = 20
    context_tokens: Annotated[int, msgspec.Meta(ge=1000)] | None = None
    prune_on_start: bool = False
    prune_days: Count = 30


class Telemetry(Section, frozen=True):
    """
    Traces of what the agent of a shell did, and of messages to other agents where an endpoint is given.

    :param enabled: whether they are written and exported.
    :param path: of the file; empty: ``traces.jsonl`` in the home.
    :param share_with_backend: whether the model's provider is told the ids of a trace.
    :param anonymize: whether instructions and commands are left out.
    :param retain_days: how long the file keeps them.
    :param otlp_endpoint: base URL of an OpenTelemetry collector (OTLP over HTTP); empty: none.
    """

    enabled: bool = True
    sink: Literal["file", "journald", "syslog", "stdout"] = "file"
    path: str = ""
    share_with_backend: bool = False
    anonymize: bool = True
    retain_days: Count = 30
    otlp_endpoint: str = ""

    def __post_init__(self) -> None:
        if self.otlp_endpoint and not is_base_url(self.otlp_endpoint):
            raise ValueError(
                "otlp_endpoint must look like https://host[:port][/path], or without TLS like http://127.0.0.1:4318"
            )


class UndoSettings(Section, frozen=True):
    """
    Snapshots of the workspace before each turn.

    :param turns: how many are kept for one session; 0: none are taken.
    :param max_files: a workspace with more files and directories has no snapshot.
    :param max_mb: maximum size in MB of the files in a workspace, and of all that its snapshots keep.
    :param shell: whether a shell's directory has snapshots, before each plan that changes something.
    """

    turns: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 20
    max_files: Count = 100_000
    max_mb: Count = 2000
    shell: bool = True
