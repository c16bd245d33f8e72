"""
What is sent of a request to a host that belongs to no provider, and which requests are refused whatever policy says.

Such a request is sent as it is, with the agent's own credentials if it has some, except for what concerns only the
connection. Nothing may make the host do something else than what was judged.
"""

from __future__ import annotations

import re
from typing import Final

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.fields import words
from ironcurtain.http.head import RequestHead
from ironcurtain.http.hosts import Host
from ironcurtain.http.urls import UnclearAddress, bracketed, read_authority
from ironcurtain.mitm_proxy.judgement import ForwardedRequest
from ironcurtain.providers.endpoints import Endpoint
from ironcurtain.providers.headers import HOP_BY_HOP, HeaderRole, role
from ironcurtain.providers.provider import RequestRefusal

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_DROPPED: Final = frozenset(
    (*HOP_BY_HOP, "connection", "upgrade", "content-length", "expect")  # the proxy generates the last two
)
_NOT_PASSED_ON: Final = frozenset(("CONNECT", "TRACE"))
"""Methods whose responses are no content of a host: some servers open tunnels, or send back what they got."""

_DOTS: Final = re.compile(r"(?i)(?:^|/|%2f|%5c)(?:\.|%2e){1,2}(?:/|%2f|%5c|$)")
_ABSOLUTE: Final = re.compile(rb"(?i)([A-Z-]{1,32}) http://([^/?\s]+)([/?][!-~]*)? (HTTP/1\.[01])")


def origin(scheme: str, host: Host, port: int) -> str:
    """:returns: the beginning of a URL, without the scheme's own port."""
    return f"{scheme}://{bracketed(host)}" + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")


def names(text: str, host: Host, port: int) -> bool:
    """
    :param text: the value of a Host header, in lower case.
    :returns: whether it names a host and port.
    """
    written = bracketed(host)
    return text in (written, f"{written}:{port}")


def read_absolute(head: bytes) -> tuple[Host, int, bytes] | None:
    """
    Parse a request to a plain-HTTP proxy.

    :param head: without the blank line at its end.
    :returns: host, port, and the head as the host gets it; ``None`` if the target is no ``http`` URL.
    :raises ProtocolViolation: programs could find different hosts in it.
    """
    line, separator, lines = head.partition(b"\r\n")
    if (match := _ABSOLUTE.fullmatch(line)) is None:
        return None
    method, written, target, version = match.groups()
    try:
        authority = read_authority(written.decode("latin-1"))
    except UnclearAddress as e:
        raise ProtocolViolation("http", f"the address is unclear: {e}") from None
    if authority.user:
        raise ProtocolViolation("http", "the address has a user name")
    path = target or b"/"
    path = path if path.startswith(b"/") else b"/" + path
    return authority.host, authority.port or 80, b"%b %b %b" % (method, path, version) + separator + lines


def forward(head: RequestHead) -> ForwardedRequest | RequestRefusal:
    """:returns: what to send once it is allowed; or why it is not sent in any case."""
    if _DOTS.search(head.path):
        return RequestRefusal(400, "bad-path", "the path has dots as a segment, which programs resolve differently")
    if head.method in _NOT_PASSED_ON:
        return RequestRefusal(403, "method-not-allowed", f"{head.method} requests are not passed on")
    connection = words([value for name, value in head.headers if name == "connection"])
    for name, value in head.headers:
        if role(name) is HeaderRole.OVERRIDE:
            why = f"the header {name} can turn the request into another one: omit it"
            return RequestRefusal(400, "method-override", why)
        if name == "upgrade" and "websocket" in value.lower():
            return RequestRefusal(403, "upgrade", "WebSocket connections are not passed on: use HTTP requests")
    kept = tuple(
        (name, value)
        for name, value in head.headers
        if name == "host" or (name not in _DROPPED and name not in connection)
    )
    return ForwardedRequest(Endpoint(head.method, head.path), head.target, kept, None, ())
