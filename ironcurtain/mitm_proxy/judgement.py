"""
Decide on each request of an agent: what to send to the provider, or why nothing is sent.

The fake key must be in the provider's key header, exactly once, and there must be no other credential: with a key of
its own, an agent could use another account and read the responses there. Where the settings name another header for the
real key, the fake one may be in either: agents know only the provider's own.

Query parameters are checked, too: Google's APIs accept keys there, other methods, and filters that remove the token
counts from a response. Headers that the provider's clients do not send are left out: gateways take orders from some.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote_plus

import msgspec

from ironcurtain.accounts.source import ACCOUNT_ID, Token
from ironcurtain.http.fields import Fields
from ironcurtain.http.head import RequestHead
from ironcurtain.llm.api_paths import request_path
from ironcurtain.llm.dialect import key_scheme, key_value
from ironcurtain.mitm_proxy.account_tokens import AccountTokens
from ironcurtain.mitm_proxy.fake_tokens import FakeToken
from ironcurtain.providers import bodies
from ironcurtain.providers.endpoints import BadPath, Endpoint, canonical, find
from ironcurtain.providers.headers import HeaderRole, names_credential, role
from ironcurtain.providers.provider import BodyRules, RequestRefusal
from ironcurtain.providers.registry import body_rules
from ironcurtain.providers.rules import ProviderRule
from ironcurtain.secrets.redaction import Secret

_METHOD_NAME: Final = re.compile(r"[^a-z]*(?:x-)?(?:http)?[^a-z]*method(?:[^a-z]*override)?")
"""Names of query parameters that override the method on some servers."""


def unwanted(query: str, known: Mapping[str, re.Pattern[str]] | None) -> str | None:
    """
    :param query: unchanged, without the question mark.
    :param known: the provider's parameters, as in :class:`~ironcurtain.providers.provider.ModelProvider`.
    :returns: the name of a forbidden parameter, or ``None``.
    """
    if not query:
        return None
    seen: set[str] = set()
    for parameter in query.split("&"):
        name, _, value = parameter.partition("=")
        if known is None:
            allowed = _may_pass(parameter)
        else:
            allowed = name in known and name not in seen and known[name].fullmatch(value) is not None
            seen.add(name)
        if not allowed:
            return name
    return None


def _may_pass(parameter: str) -> bool:
    names = (part.partition("=")[0].casefold() for part in re.split("[&;]", unquote_plus(parameter)))
    return not any(names_credential(name) or _METHOD_NAME.fullmatch(name) for name in names)


HTTP_PORT: Final = 80
HTTPS_PORT: Final = 443
"""Ports to omit from the Host header (RFC 9110 sections 4.2.1 and 4.2.2)."""

_NAMES_NO_HEADER: Final = frozenset(("close", "keep-alive"))
"""Words of a Connection header which say what becomes of the connection; a header Keep-Alive is dropped in any case."""

ABSENT: Final = "not-needed"
"""Code of the response to a request that clients make and can do without: 404, and nobody is told."""

_SHOWN = 100
"""Maximum length in characters of an agent's path in a reason."""


class Credentials(msgspec.Struct, frozen=True):
    """
    What a session has for one provider.

    :ivar fake: the agent's key or token, and what the agent takes for the account's id, if requests name one.
    :ivar tokens: the provider's.
    """

    rule: ProviderRule
    fake: FakeToken
    tokens: AccountTokens


class ForwardedRequest(NamedTuple):
    """
    The request to send to the provider.

    :ivar endpoint: the endpoint that allows it.
    :ivar target: path and query, including a gateway's path.
    :ivar kept: all headers except the real key, Connection and those that frame the body (Content-Length,
        Transfer-Encoding), which belong to the connection.
    :ivar bodies: the rules by which :func:`~ironcurtain.providers.bodies.judge_body` has to judge the body before it is
        sent; ``None`` if it is not judged.
    :ivar dropped: names of unknown headers that are not sent.
    :ivar payment: says which headers carry the token and the account's id; ``None`` if nobody pays.
    """

    endpoint: Endpoint
    target: str
    kept: Fields
    bodies: BodyRules | None
    dropped: tuple[str, ...]
    payment: ProviderRule | None = None

    def __repr__(self) -> str:
        return f"ForwardedRequest({self.endpoint!r}, {self.target!r}, ...)"

    @property
    def rule(self) -> str:
        """The endpoint that allows it, as written in records."""
        return str(self.endpoint)

    def headers(self, token: Token | None) -> Fields:
        """:returns: all headers, with the token, so they must not be shown."""
        payment = self.payment
        if payment is None or token is None:
            return self.kept
        paying = [(payment.key_header, key_value(payment.key_header, token.secret.reveal()))]
        if payment.account_header and (account := token.extra.get(ACCOUNT_ID)) is not None:
            paying.append((payment.account_header, account.reveal()))
        return (*self.kept, *paying)

    def lines(self, token: Token | None) -> bytes:
        """:returns: the request line and the headers, each with its line end. They contain the token."""
        written = [f"{name}: {value}\r\n" for name, value in self.headers(token)]
        return f"{self.endpoint.method} {self.target} HTTP/1.1\r\n{''.join(written)}".encode("latin-1")


class _Refused(Exception):
    def __init__(self, status: int, code: str, reason: str) -> None:
        self.refusal = RequestRefusal(status, code, reason)


def judge(head: RequestHead, credentials: Credentials) -> ForwardedRequest | RequestRefusal:
    """
    Decide on one request. Every request of a connection is judged separately.

    :param head: head of a request that came through the tunnel to the provider's host.
    """
    try:
        return _judge(head, credentials)
    except _Refused as refused:
        return refused.refusal


def _judge(head: RequestHead, credentials: Credentials) -> ForwardedRequest:
    rule = credentials.rule
    path = _path(head)
    found = _sort(head.headers, rule)
    _check_host(found.hosts, rule)
    endpoint = find(rule.endpoints, head.method, path)
    if endpoint is None:
        if find(rule.absent, head.method, path) is not None:
            raise _Refused(404, ABSENT, f"nothing needs {path[:_SHOWN]} here")
        request = f"{head.method} {path[:_SHOWN]}"
        raise _Refused(403, "endpoint-not-allowed", f"{request} is not among the requests allowed to {rule.name}")
    if (name := unwanted(head.query, rule.provider.query)) is not None:
        raise _Refused(403, "query-not-allowed", f"the query parameter {name[:_SHOWN]!r} is not allowed")
    _check_key(found, credentials)
    rules = body_rules(rule.provider, path, found.content_types[0] if found.content_types else "")
    if rules is not None:
        _check_content(found)
    query = f"?{head.query}" if head.query else ""
    target = f"{request_path(rule.upstream_path, path)}{query}"
    return ForwardedRequest(endpoint, target, _outgoing(found, rule), rules, tuple(dict.fromkeys(found.unknown)), rule)


def _path(head: RequestHead) -> str:
    try:
        return canonical(head.path)  # a target with scheme and host is not canonical
    except BadPath as e:
        raise _Refused(400, "bad-path", f"the path is ambiguous: {e.detail}") from None


class _Found:
    """
    The headers of one request, by role; the lists contain values.

    :ivar unknown: names of headers that are not sent.
    """

    __slots__ = ("accounts", "codings", "content_types", "hosts", "kept", "keys", "other_credential", "unknown")

    def __init__(self) -> None:
        self.accounts: list[str] = []
        self.kept: list[tuple[str, str]] = []
        self.keys: list[tuple[str, str]] = []
        self.hosts: list[str] = []
        self.content_types: list[str] = []
        self.codings: list[str] = []
        self.unknown: list[str] = []
        self.other_credential = ""


def _sort(headers: Fields, rule: ProviderRule) -> _Found:
    found, known = _Found(), rule.provider.headers
    key_headers, account_header = (rule.key_header, rule.provider.key_header), rule.account_header
    connection: list[str] = []
    for header in headers:
        name, value = header
        if name in key_headers:
            found.keys.append(header)
        elif name == account_header:
            found.accounts.append(value)
        elif name in known:
            found.kept.append(header)
        elif (what := role(name)) is HeaderRole.DROP:
            continue
        elif what is HeaderRole.CONTENT_TYPE:
            found.content_types.append(value)
            found.kept.append(header)
        elif what is HeaderRole.CONTENT_ENCODING:
            found.codings.append(value)
            found.kept.append(header)
        elif what is HeaderRole.HOST:
            found.hosts.append(value)
        elif what is HeaderRole.CREDENTIAL:
            found.other_credential = name
        elif what is HeaderRole.OVERRIDE:
            raise _Refused(400, "method-override", f"the header {name} can turn the request into another one: omit it")
        elif what is HeaderRole.CONNECTION:
            connection += (word.strip().lower() for word in value.split(","))
        elif what is HeaderRole.UPGRADE:
            raise _Refused(426, "upgrade", "connections are not upgraded here: use HTTP/1.1 requests")
        elif what is HeaderRole.UNKNOWN:
            found.unknown.append(name)
    if "upgrade" in connection:
        raise _Refused(426, "upgrade", "connections are not upgraded here: use HTTP/1.1 requests")
    if not _NAMES_NO_HEADER.issuperset(connection):  # it names the hop-by-hop headers
        found.kept = [header for header in found.kept if header[0] not in connection]
        found.unknown = [name for name in found.unknown if name not in connection]
    return found


def _check_host(hosts: list[str], rule: ProviderRule) -> None:
    if len(hosts) != 1:
        raise _Refused(400, "bad-host", "the request does not have exactly one Host header")
    if hosts[0].lower() not in (rule.host, f"{rule.host}:{rule.port}"):
        raise _Refused(403, "other-host", f"the Host header does not name {rule.host}, which this connection is for")


def _check_key(found: _Found, credentials: Credentials) -> None:
    rule = credentials.rule
    if len(found.keys) > 1:
        raise _Refused(400, "duplicate-key", "more than one header carries a key")
    if found.other_credential:
        advice = f"only {rule.key_header} may carry a key"
        raise _Refused(
            403, "other-credential", f"the header {found.other_credential[:_SHOWN]} is not allowed, {advice}"
        )
    if not found.keys:
        raise _Refused(403, "no-key", f"the header {rule.key_header} with this session's key is missing")
    name, value = found.keys[0]
    if expected := key_scheme(name):
        scheme, _, value = value.partition(" ")
        value = value if scheme.lower() == expected.lower() else ""
    if not _equal(value, credentials.fake.secret):
        raise _Refused(403, "wrong-key", f"the key is not the one that this session was given for {rule.name}")
    account = credentials.fake.account
    if any(account is None or not _equal(named, account) for named in found.accounts):
        raise _Refused(
            403, "other-account", f"the header {rule.account_header} does not name the account of this session"
        )


def _equal(value: str, expected: Secret) -> bool:
    # Header values are bytes, one character each; compare_digest accepts non-ASCII characters only as bytes.
    return hmac.compare_digest(value.encode("latin-1", "replace"), expected.reveal().encode("ascii"))


def _check_content(found: _Found) -> None:
    if len(found.content_types) != 1 or not bodies.is_json(found.content_types[0]):
        raise _Refused(415, "not-json", "the Content-Type of this request must be application/json, in UTF-8")
    if any(coding.lower() != "identity" for coding in found.codings):
        raise _Refused(415, "content-encoding", "the body of this request must not be compressed")


def _outgoing(found: _Found, rule: ProviderRule) -> Fields:
    port = "" if rule.upstream_port == (HTTPS_PORT if rule.tls else HTTP_PORT) else f":{rule.upstream_port}"
    host = f"[{rule.upstream_host}]" if ":" in rule.upstream_host else rule.upstream_host
    # The response must not be compressed, since it is searched for token counts and the key.
    return (
        ("host", f"{host}{port}"),
        *found.kept,
        ("accept-encoding", "identity"),
    )
