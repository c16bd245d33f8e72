"""
Judge connections and requests of programs: they are calls of the built-in server ``network``.

Hosts are canonical before they are judged, and what programs could read in different ways is denied. A permission for
these calls has to name the server, and a host that is not public exactly. A connection that no rule is about is asked,
unless it only reports on its user; a request that no rule is about goes the way of its connection, which was judged
before.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from msgspec.structs import replace

from ironcurtain.http.hosts import Host
from ironcurtain.http.public import is_public
from ironcurtain.http.urls import UnclearAddress, bracketed, read_host, read_web_address
from ironcurtain.policy import telemetry
from ironcurtain.policy.judgement import Judgement, Refusal, Ruling
from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.policy.matching import PreparedRule
from ironcurtain.policy.plans import Plan
from ironcurtain.policy.targets import Target
from ironcurtain.policy.verdict import Automatic, Decision, Verdict

SERVER: Final = "network"
"""The name under which policies, records and questions know the network. No MCP server can have it."""

CONNECT: Final = "connect"
"""The tool that makes a connection: ``host``, ``port``, and ``party``, who wants it."""

REQUEST: Final = "request"
"""
The tool that sends a request over a connection that was allowed: ``method``, ``url``, ``party``, and if it gets a
token of the person, ``account``, whose, and ``number``, which no other has.
"""

ASK_RULE: Final = "structural-network-ask"
"""Asks about a connection that no rule is about."""

PRIVATE_RULE: Final = "structural-private-address"
"""Denies a connection to a host that is not public and that no rule names exactly."""

LISTED_RULE: Final = "structural-server-network"
"""
Allows a connection or a request of a server to a host that its ``"network"`` lists, if no rule is about it; denies
those to others, whatever the rules say.
"""

TELEMETRY_RULE: Final = "structural-telemetry"
"""Denies a connection to a host that only gathers reports, if no rule is about it."""

NO_RULE: Final = frozenset((ASK_RULE, PRIVATE_RULE, TELEMETRY_RULE))
"""What decides about a connection that no rule is about."""

REQUEST_RULE: Final = "structural-connection-allowed"
"""Allows a request that no rule is about."""

ACCOUNT_RULE: Final = "structural-account"
"""Asks about a request that gets a token of the person, if no rule is about it."""

HTTPS_PORT: Final = 443

_WORD = {"type": "string", "pattern": "^.+$"}  # a schema without a pattern would let kept approvals cover other values

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
    CONNECT: {
        "type": "object",
        "properties": {"host": _WORD, "port": {"type": "integer"}, "party": _WORD},
        "required": ["host"],
    },
    REQUEST: {
        "type": "object",
        "properties": {
            **dict.fromkeys(("method", "url", "party", "account"), _WORD),
            "body": {},
            "number": {"type": "integer"},
        },
        "required": ["url"],
    },
}
"""The input schema of each tool."""

_SERVER_PARTY = "server "

_LOCAL_NAMES = frozenset(("localhost", "ip6-localhost", "ip6-loopback", "localhost.localdomain"))
_LOCAL_SUFFIXES = (".localhost", ".localhost.localdomain")


def canonical_host(text: str) -> Host:
    """
    :param text: a host as a program wrote it, with or without brackets around an IPv6 address, in any case, with or
        without the full stop at its end.
    :raises UnclearAddress: programs could read it in different ways, or it is no host.
    """
    name = text.removesuffix(".")
    try:
        ipaddress.IPv6Address(name)
    except ValueError:
        return read_host(name)
    return read_host(f"[{name}]")


def is_local(host: Host) -> bool:
    """:returns: whether a host is this machine, or has an address that is not public."""
    if host.is_address:
        return not is_public(host.name)
    return host.name in _LOCAL_NAMES or host.name.endswith(_LOCAL_SUFFIXES)


def prepare(judgement: Judgement) -> None:
    """
    Bring the arguments of a call into canonical form, and choose the rules that may decide about it.

    :raises Refusal: they are unclear.
    """
    arguments = judgement.arguments
    try:
        target = _connection(arguments) if judgement.call.tool == CONNECT else _request(arguments)
    except UnclearAddress as e:
        raise Refusal("default-deny", f"the address is ambiguous: {e}") from None
    judgement.targets = {("host" if judgement.call.tool == CONNECT else "url"): target}
    judgement.plan = _narrowed(judgement.plan, judgement.call.tool, target)


def server_party(server: str) -> str:
    """:returns: how a server is called that wants a connection."""
    return f"{_SERVER_PARTY}{server}"


def server_of(arguments: Mapping[str, Any]) -> str:
    """:returns: the server that wants a connection; empty if it is not a server."""
    party = str(arguments.get("party") or "")
    return party.removeprefix(_SERVER_PARTY) if party.startswith(_SERVER_PARTY) else ""


def decide(judgement: Judgement, ruling: Ruling, listed: DomainPatterns | None = None) -> Ruling:
    """
    :param listed: the only hosts that a server may reach, which a person listed for it.
    :returns: the ruling of the rules, or what becomes of a call that none of them is about.
    """
    (target,) = judgement.targets.values()
    if listed is not None and not listed.match(target):
        why = f'"network" in mcp-servers.json does not list {target.text} for this server'
        ruling = Ruling(Decision.DENY, LISTED_RULE, why)
    elif not ruling.default:
        return ruling
    elif listed is not None:
        why = f'"network" in mcp-servers.json lists {target.text} for this server, and no rule is about it'
        ruling = Ruling(Decision.ALLOW, LISTED_RULE, why)
    elif judgement.call.tool == REQUEST and (account := judgement.arguments.get("account")):
        party = judgement.arguments.get("party") or "a program"
        why = f"{party} wants to send a request with your {account} token, and no rule is about it"
        ruling = Ruling(Decision.ESCALATE, ACCOUNT_RULE, why)
        judgement.asking.append(ACCOUNT_RULE)
        judgement.automatic = Automatic.NEVER
    elif judgement.call.tool == REQUEST:
        ruling = Ruling(Decision.ALLOW, REQUEST_RULE, "its connection was allowed, and no rule is about the request")
    elif target.host is not None and is_local(target.host):
        why = f"{target.text} is not on the public network, and no rule for the server network names it exactly"
        ruling = Ruling(Decision.DENY, PRIVATE_RULE, why)
    elif (reports := telemetry.find(target)) is not None:
        why = f"{target.text} gathers {reports.what}, which no task needs"
        ruling = Ruling(Decision.DENY, TELEMETRY_RULE, why)
    else:
        party = judgement.arguments.get("party") or "a program"
        ruling = Ruling(
            Decision.ESCALATE, ASK_RULE, f"{party} wants to connect to {target.text}, and no rule is about it"
        )
        judgement.asking.append(ASK_RULE)
        judgement.automatic = Automatic.NEVER
    judgement.note(
        ruling.rule, ruling.decision, ruling.reason, "" if judgement.call.tool == REQUEST else "proxy-domain"
    )
    return ruling


def refusal_status(verdict: Verdict) -> int:
    """:returns: status of the HTTP response to a request over a connection that was denied."""
    if verdict.rule != TELEMETRY_RULE:
        return HTTPStatus.FORBIDDEN
    found = telemetry.find(_connection(dict(verdict.arguments)))
    return HTTPStatus.FORBIDDEN if found is None else found.status


def names_exactly(plan: Plan, target: Target) -> bool:
    """:returns: whether a rule that does not deny names a host, without a wildcard."""
    return any(_names(rule, target) for rules in plan.rules.values() for rule in rules)


def _names(rule: PreparedRule, target: Target) -> bool:
    return rule.decision is not Decision.DENY and rule.domains is not None and rule.domains.names(target)


def _connection(arguments: dict[str, Any]) -> Target:
    port = arguments.setdefault("port", HTTPS_PORT)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise Refusal("invalid-arguments", "port must be a number from 1 to 65535")
    host = canonical_host(_text(arguments, "host"))
    arguments["host"] = host.name
    return Target(f"{bracketed(host)}:{port}", host, port=port)


def _request(arguments: dict[str, Any]) -> Target:
    url = _text(arguments, "url")
    address = read_web_address(url)
    return Target(url, address.host, port=address.port)


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise Refusal("invalid-arguments", f"{name} must be a string")
    return value


def _narrowed(plan: Plan, tool: str, target: Target) -> Plan:
    """:returns: a plan without the permissions that do not name the server, or a private host not exactly."""
    exact = tool == CONNECT and target.host is not None and is_local(target.host)

    def applies(rule: PreparedRule) -> bool:
        if rule.decision is Decision.DENY:
            return True
        if rule.permits and SERVER not in (rule.rule.conditions.server or ()):
            return False
        return not exact or _names(rule, target)

    rules = {role: tuple(filter(applies, its)) for role, its in plan.rules.items()}
    return replace(plan, rules=rules)
