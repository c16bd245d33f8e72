"""What every agent has in common: what its adapter is told, what it gives, and how a turn ends."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, Protocol

from ironcurtain.errors import SessionError, UsageError
from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.registry import KNOWN_PROVIDERS

CALL_SECONDS = 3600
"""Seconds that a tool call may take besides the wait for a person (the limit of a turn ends it earlier)."""

Kind = Literal["quota", "overloaded", "refused", "empty", "mcp-down", "failed"]
"""
Why a turn has no answer.

``quota``: the provider wants money or patience; ``overloaded``: the provider has no capacity, or an error of its own;
``refused``: our MITM proxy let a request to the model not pass; ``empty``: the agent ended well and said nothing;
``mcp-down``: the agent had no connection to its tools; ``failed``: anything else.
"""


class TurnFailed(SessionError):
    """
    A message has no answer. The conversation can go on.

    :param detail: for the person: what the agent said, and how its output ended.
    """

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__("MESSAGE_FAILED", detail)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Facts:
    """
    What an adapter is told about its session.

    :ivar fake_keys: by name of the provider: those of the adapter's providers that this session can reach.
    :ivar model: as the person named it; empty: the agent's default.
    :ivar orientation: what the agent is told about where it is (:mod:`ironcurtain.agents.orientation`).
    :ivar escalation_seconds: how long a tool call may wait for a person.
    :ivar resumed: whether the session was closed before, and its home has the agent's own files.
    """

    fake_keys: Mapping[str, str]
    model: str
    orientation: str
    escalation_seconds: float
    resumed: bool

    @property
    def tool_seconds(self) -> int:
        """Seconds after which the agent may give a tool call up: later than any person may answer."""
        return ceil(self.escalation_seconds) + CALL_SECONDS


@dataclass(frozen=True, slots=True)
class File:
    """
    A file that is written before the container starts.

    :ivar place: ``home``: the agent's home, writable; ``orientation``: the agent cannot change it.
    :ivar path: below the place, with ``/`` between names.
    :ivar replace: ``False``: a file that is there already, from before a resume, is left alone.
    """

    place: Literal["home", "orientation"]
    path: str
    content: str
    replace: bool = True


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """
    How the agent's command ended.

    :ivar exit_code: its exit status; 128 and more after a signal.
    :ivar stdout: what it printed. The caller bounds it: lines may be missing, or cut, at its beginning.
    :ivar stderr: likewise.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """
    What the agent answered.

    :ivar usage: tokens of the turn as the agent counted them; ``None`` if it did not say.
    """

    text: str
    usage: TokenUsage | None = None


class Adapter(Protocol):
    """
    One agent program.

    :ivar id: what ``--agent`` takes: small letters, digits and ``-``.
    :ivar display_name: for people.
    :ivar image: name of its image folder.
    :ivar providers: names of the model providers that it can use, the one to prefer first. No other can be reached.
    :ivar supports_pty: whether :meth:`screen` gives a full-screen interface.
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
        :returns: what the agent finds in its environment, besides what every agent gets
            (:func:`ironcurtain.agents.adapter.environment`).
        :raises UsageError: the agent cannot work with these facts, such as a model of a provider without a key.
        """

    def files(self, facts: Facts) -> Sequence[File]:
        """:returns: the files of this session: its configuration, and the orientation."""

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """
        :param first: no message of this conversation was answered yet.
        :returns: the command that works on one message, which it reads from its standard input.
        """

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """
        :param first: as for :meth:`turn`.
        :param task: what the person wants done first, as one argument; empty: nothing yet.
        :returns: the command that shows the agent's own full-screen interface.
        :raises UsageError: the agent cannot begin with a task so.
        """

    def answer(self, outcome: TurnOutcome) -> AgentAnswer:
        """
        Read what the command of a turn printed.

        :raises TurnFailed: there is no answer.
        """


_UNQUOTED = re.compile(r'[\x00-\x1f\x7f"\\]')


def json_text(value: Any) -> str:
    """:returns: a value as the text of a JSON file, which is YAML as well."""
    return json.dumps(value, indent=2) + "\n"


def toml_string(text: str) -> str:
    """:returns: a text as a basic string of TOML."""
    return '"' + _UNQUOTED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + '"'


KEY_VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GOOGLE_API_KEY"}
"""Where most agents look for each provider's key."""


def fake_key(facts: Facts, provider: str, agent: str) -> str:
    """
    :param agent: its display name, for the message.
    :returns: the fake key for a provider.
    :raises UsageError: the session has none.
    """
    key = facts.fake_keys.get(provider, "")
    if not key:
        raise UsageError(f"{agent} needs a key for {provider}: configure [providers.{provider}] in config.toml")
    return key


def provider_and_model(facts: Facts, providers: tuple[str, ...], agent: str) -> tuple[str, str]:
    """
    Split the model's name for an agent that speaks with several providers.

    ``PROVIDER/MODEL`` says it all; else the name tells by its beginning, and failing that it is a model of the first
    provider with a key.

    :param providers: those the agent can use, the one to prefer first.
    :param agent: its display name, for messages.
    :returns: the provider, and the model as that provider spells it, empty for the agent's default.
    :raises UsageError: the session has no key for that provider.
    """
    named, slash, model = facts.model.partition("/")
    if slash and named in providers:
        provider = named
    else:
        model = facts.model
        keyed = [name for name in providers if facts.fake_keys.get(name)]
        provider = _family(model) or (keyed or providers)[0]
    fake_key(facts, provider, agent)
    return provider, model


def _family(model: str) -> str:
    return next((known.name for known in KNOWN_PROVIDERS.values() if known.models.match(model)), "")


WORKSPACE = "/workspace"
"""Where the agent finds the files that it works on."""

HOME = "/home/agent"
"""The agent's home; it outlives the container."""

ORIENTATION = "/etc/ironcurtain"
"""Where :class:`~ironcurtain.agents.adapter.File` values of the place ``orientation`` are, read-only."""

CA_FILE = f"{ORIENTATION}/ca.pem"
"""The only certificate authority that there is: the MITM proxy's."""

PROXY_URL = "http://127.0.0.1:18080"
"""The MITM proxy, as the container's entry point makes it reachable."""

SERVER = "ironcurtain"
"""Name of the MCP proxy among an agent's MCP servers."""

MCP_COMMAND = ("socat", "STDIO", "UNIX-CONNECT:/run/ironcurtain/proxy.sock")
"""Joins an agent that starts MCP servers as processes to the MCP proxy."""

_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_CA_VARIABLES = (
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CODEX_CA_CERTIFICATE"),
    *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE"),
)


def environment() -> Mapping[str, str]:
    """:returns: what every agent finds in its environment."""
    # A server that the agent starts to try its work is on the loopback address, and is no business of the proxy.
    here = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        **dict.fromkeys(_PROXY_VARIABLES, PROXY_URL),
        **here,
        **dict.fromkeys(_CA_VARIABLES, CA_FILE),
    }
