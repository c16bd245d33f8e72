"""The interface of all agents: the facts for an adapter, the values it returns, and the outcome of a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Literal, Protocol

import msgspec

from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.errors import UsageError
from ironcurtain.providers.registry import KNOWN_PROVIDERS, family

CALL_SECONDS = 3600
"""Seconds allowed for a tool call in addition to the wait for a person (the limit of a turn ends it earlier)."""

WORKSPACE = "/workspace"
"""The workspace, as the agent sees it."""

MCP_COMMAND = ("socat", "STDIO", "UNIX-CONNECT:/run/ironcurtain/proxy.sock")
"""The command in containers that connects an agent to the MCP proxy, as a process that is an MCP server."""


class Facts(msgspec.Struct, frozen=True):
    """
    The facts about a session for an adapter.

    :ivar fake_keys: by name of the provider: fake keys and tokens of the adapter's providers that this session can
        reach.
    :ivar model: as the user gave it; empty: the agent's default.
    :ivar orientation: the text for the agent about its environment (:mod:`ironcurtain.agents.orientation`).
    :ivar escalation_seconds: how long a tool call may wait for a person.
    :ivar resumed: whether the session was resumed, so that its home has the agent's own files.
    :ivar fake_accounts: by name of the provider: what stands for the id of the account, where requests name one.
    :ivar places: by name of the provider: the settings that name its place in a cloud.
    :ivar conversation: the id of the conversation to resume, as a dialogue named it; empty: unknown.
    :ivar directory: the path of the workspace, where the agent works. Agents find a conversation by it.
    :ivar mcp_command: connects the agent to the MCP proxy, as a process that is an MCP server.
    :ivar version: of the agent's program where it is this machine's; empty: that of the image, or unknown.
    """

    fake_keys: Mapping[str, str]
    model: str
    orientation: str
    escalation_seconds: float
    resumed: bool
    fake_accounts: Mapping[str, str] = msgspec.field(default_factory=dict)
    places: Mapping[str, Mapping[str, str]] = msgspec.field(default_factory=dict)
    conversation: str = ""
    directory: str = WORKSPACE
    mcp_command: tuple[str, ...] = MCP_COMMAND
    version: str = ""

    def older_than(self, release: Sequence[int]) -> bool:
        """:returns: whether the agent's program is known to be older than a release."""
        numbers = [int(part) for part in self.version.split(".") if part.isdecimal()]
        return bool(numbers) and numbers < list(release)

    def paid(self, providers: Sequence[str]) -> str:
        """:returns: the first of these providers that this session can reach; empty if it can reach none."""
        return next((name for name in providers if name in self.fake_keys), "")

    @property
    def tool_seconds(self) -> int:
        """Seconds after which the agent may abandon a tool call: longer than the time for a person's answer."""
        return ceil(self.escalation_seconds) + CALL_SECONDS


class File(msgspec.Struct, frozen=True):
    """
    A file to write before the container starts.

    :ivar place: ``home``: the agent's home, writable; ``orientation``: the agent cannot change it.
    :ivar path: below the place, with ``/`` between names.
    :ivar replace: ``False``: keep an existing file, from before a resume.
    """

    place: Literal["home", "orientation"]
    path: str
    content: str
    replace: bool = True


class Shareable(msgspec.Struct, frozen=True):
    """
    A file or directory of the user's own for an agent, which ``[agents.NAME] share`` lets it read.

    :ivar name: the word for it in settings.
    :ivar path: below the user's home, and the agent's, with ``/`` between names.
    :ivar joined: whether its text follows the orientation, since both would be the same file.
    """

    name: Literal["memory", "skills", "commands"]
    path: str
    joined: bool = False


COMPILE_CACHE = "NODE_COMPILE_CACHE"
"""The variable that says where Node.js keeps what it compiles."""


class Compiling(msgspec.Struct, frozen=True):
    """
    How an agent's program, which Node.js compiles at each start, loads most of itself and ends.

    :ivar arguments: with which it does, if its input is empty.
    :ivar environment: variables without which its own process would not be the one that loads.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]


class Adapter(Protocol):
    """
    One agent program.

    :ivar id: the value for ``--agent``: lower-case letters, digits and ``-``.
    :ivar display_name: for people.
    :ivar image: name of its image folder.
    :ivar providers: names of the model providers that it can use, the preferred one first. It can reach no other.
    :ivar supports_pty: whether :meth:`screen` returns a full-screen interface.
    """

    @property
    def id(self) -> str: ...

    @property
    def display_name(self) -> str: ...

    @property
    def image(self) -> str: ...

    @property
    def providers(self) -> tuple[str, ...]: ...

    @property
    def supports_pty(self) -> bool: ...

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """
        :returns: the agent's environment, besides the variables of all agents
            (:func:`ironcurtain.agents.adapter.environment`).
        :raises UsageError: the agent cannot work with these facts, such as a model of a provider without a key.
        """

    def files(self, facts: Facts) -> Sequence[File]:
        """:returns: the files of this session: its configuration, and the orientation."""

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """
        :param first: whether no message of this conversation was answered yet.
        :returns: the command of a program that takes messages from its standard input, as :meth:`dialogue` says.
        """

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """
        :param first: as for :meth:`turn`.
        :param task: the first task, as one argument; empty: none.
        :returns: the command that shows the agent's full-screen interface.
        :raises UsageError: the agent cannot start with a task in this case.
        """

    def dialogue(self, facts: Facts) -> Dialogue:
        """:returns: what is said to a program that :meth:`turn` starts, and what it says."""


def shareables(adapter: Adapter) -> tuple[Shareable, ...]:
    """:returns: what an agent can share: its attribute ``shareable``, which adapters of other packages may lack."""
    return tuple(getattr(adapter, "shareable", ()))


def compiling(adapter: Adapter) -> Compiling | None:
    """:returns: how its program is compiled: its attribute ``compiling``; ``None`` if it lacks that, as most do."""
    return getattr(adapter, "compiling", None)


def json_text(value: Any) -> str:
    """:returns: a value as JSON text, which is also YAML."""
    return json.dumps(value, indent=2) + "\n"


KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
"""The usual environment variables for each provider's key."""


def fake_key(facts: Facts, provider: str, agent: str) -> str:
    """
    :param agent: its display name, for the message.
    :returns: the fake key for a provider.
    :raises UsageError: the session has none.
    """
    key = facts.fake_keys.get(provider, "")
    if not key:
        raise UsageError(
            f"{agent} needs an account for {provider}: configure [providers.{provider}] in config.toml, or log in with "
            "ironcurtain login; or name another model"
        )
    return key


def provider_and_model(facts: Facts, providers: tuple[str, ...], agent: str) -> tuple[str, str]:
    """
    Split the model's name for an agent that supports several providers.

    ``PROVIDER/MODEL`` is explicit, of which another account of the same models can pay. Else the provider is found by
    the beginning of the name, or is the first one with a key.

    :param providers: those that the agent can use, the preferred one first.
    :param agent: its display name, for messages.
    :returns: the provider, and the provider's name of the model, empty for the agent's default.
    :raises UsageError: the session has no key for that provider.
    """
    keyed = [name for name in providers if facts.fake_keys.get(name)]
    named, slash, model = facts.model.partition("/")
    if not slash or named not in providers:
        named, model = _family(facts.model), facts.model
    # Another account can pay for the same models.
    fitting = [name for name in keyed if not named or family(name) == named]
    provider = named if named in keyed else (fitting or ([named] if named else providers))[0]
    fake_key(facts, provider, agent)
    return provider, model


def _family(model: str) -> str:
    return next((known.name for known in KNOWN_PROVIDERS.values() if known.models.match(model)), "")


HOME = "/home/agent"
"""The agent's home, kept between containers."""

ORIENTATION = "/etc/ironcurtain"
"""Where :class:`~ironcurtain.agents.adapter.File` values of the place ``orientation`` are, read-only."""

CA_FILE = f"{ORIENTATION}/ca.pem"
"""The MITM proxy's certificate authority, for programs that add it to those of the system."""

CA_BUNDLE = f"{ORIENTATION}/ca-bundle.pem"
"""That and the system's authorities, for programs that read one file only."""

TRUST_STORE = f"{ORIENTATION}/ca-bundle.p12"
"""The same for Java."""

PROXY_URL = "http://127.0.0.1:18080"
"""The MITM proxy's address."""

SERVER = "ironcurtain"
"""Name of the MCP proxy among an agent's MCP servers."""

_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_YARN_VARIABLES = ("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY")
_ADDED_CA_VARIABLES = ("NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "DENO_CERT")
_CA_BUNDLE_VARIABLES = (
    *("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CARGO_HTTP_CAINFO"),
    *("YARN_HTTPS_CA_FILE_PATH", "npm_config_cafile"),
)


_JAVA_OPTIONS = " ".join(
    (
        *(f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort=18080" for scheme in ("http", "https")),
        *("-Dhttp.nonProxyHosts=localhost|127.*|[::1]", f"-Djavax.net.ssl.trustStore={TRUST_STORE}"),
    )
)
"""What Java takes from no other variable. Each of its programs says on standard error that it read them."""


def environment() -> Mapping[str, str]:
    """:returns: the environment of all agents."""
    # Servers that the agent starts for its own tests are on the loopback address, which bypasses the proxy.
    here = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        **dict.fromkeys((*_PROXY_VARIABLES, *_YARN_VARIABLES), PROXY_URL),
        "JAVA_TOOL_OPTIONS": _JAVA_OPTIONS,
        "pnpm_config_store_dir": f"{HOME}/.local/share/pnpm/store",  # else in the workspace, as another mount
        "NODE_USE_ENV_PROXY": "1",  # else fetch of Node.js ignores those variables
        **here,
        **dict.fromkeys(_ADDED_CA_VARIABLES, CA_FILE),
        **dict.fromkeys(_CA_BUNDLE_VARIABLES, CA_BUNDLE),
    }
