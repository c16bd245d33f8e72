"""Decide on a request inside a tunnel and record it before it is sent; build the response to a refused request."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from ironcurtain.errors import AuditUnavailable
from ironcurtain.http.head import HttpRequest, read_request
from ironcurtain.mitm_proxy.answer import AnswerRelay
from ironcurtain.mitm_proxy.dialling import explain
from ironcurtain.mitm_proxy.exchange import Exchange, ExchangeClient, Outgoing
from ironcurtain.mitm_proxy.judgement import ForwardedRequest, judge
from ironcurtain.mitm_proxy.reached_limit import wait_words
from ironcurtain.mitm_proxy.recording import ProxiedResponse, Recorder
from ironcurtain.mitm_proxy.scrub import Scrubber
from ironcurtain.mitm_proxy.shared import Destination, Shared
from ironcurtain.network.dialling import AddressRefused
from ironcurtain.providers.provider import ModelProvider, RequestRefusal
from ironcurtain.providers.usage import UsageReader
from ironcurtain.text.display import one_line

UNRECORDED = RequestRefusal(503, "audit-unavailable", "the audit log cannot be written: no further requests are made")
"""The response to every request while nothing can be recorded."""


ENDED: Final = "requests-ended"
"""Code of the response to every request once the budget is used up, or the session must not go on."""

WITHOUT_BODY: Final = frozenset(("GET", "HEAD"))
"""Methods of requests that have no body, unless they specify one."""


NAMES_RECORDED: Final = 20
"""Maximum number of headers and fields that a record names because they are not sent."""

NAME_LIMIT: Final = 60
"""Maximum length in characters of such a name."""

REASON_LIMIT: Final = 500
"""Maximum length in characters of a reason, which can contain paths and names of the agent."""


def response(refusal: RequestRefusal, provider: ModelProvider, *, close: bool = False) -> bytes:
    """
    Build the response to a refused request: the reason, in the format of the provider's errors.

    Agents show the message of such an error to their user, so it says who refused the request and why.

    :param close: whether the connection ends after it.
    :returns: the complete response, head and body.
    """
    body = msgspec.json.encode(provider.error(refusal, f"IronCurtain: {refusal.reason[:REASON_LIMIT]}"))
    connection = (["upgrade"] if refusal.status == HTTPStatus.UPGRADE_REQUIRED else []) + (["close"] if close else [])
    head = [
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    if refusal.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        head.append("x-should-retry: false")  # the SDKs of Anthropic and OpenAI honour it
    if refusal.status == HTTPStatus.UPGRADE_REQUIRED:
        head.append("upgrade: HTTP/1.1")  # a 426 must name a protocol (RFC 9110 section 15.5.22)
    if connection:
        head.append(f"connection: {', '.join(connection)}")
    return "\r\n".join([*head, "", ""]).encode("ascii") + body


class ProviderObserver:
    """Records the exchanges with one provider, and reports its failures. See :class:`ExchangeObserver`."""

    def __init__(self, recorder: Recorder, destination: Destination) -> None:
        rule = destination.credentials.rule
        self._recorder, self._name, self._troubles = recorder, rule.name, destination.troubles
        self._tokens = destination.credentials.tokens
        self.host = rule.upstream_host
        self.now = recorder.now

    def unreachable(self, error: BaseException | None) -> RequestRefusal:
        """See :class:`ExchangeObserver`."""
        why = explain(error, self.host)
        if isinstance(error, AddressRefused):
            why += ". If it is a gateway of yours, set it as base_url in the provider's settings."
        return RequestRefusal(502, "provider-unreachable", why)

    def ended(
        self, request_id: str, answer: AnswerRelay, duration: float, request_size: int, error: str, fault: str
    ) -> None:
        """See :class:`ExchangeObserver`."""
        usage, estimated = answer.usage(request_size)
        now = self._tokens.now()
        wait = answer.limit.seconds(now) if answer.limit is not None else None
        told = (answer.status, duration, answer.size, usage, estimated, answer.model, error, answer.cut, wait)
        self._recorder.response(ProxiedResponse(request_id, self._name, *told))
        if text := self._troubles.after(answer.status, fault, "" if wait is None else wait_words(wait, now)):
            self._recorder.tell(self._name, text)


class RequestAdmission:
    """
    :param destination: the provider of the tunnel's host.
    :param name: the host that the client named in its TLS handshake.
    """

    def __init__(self, shared: Shared, destination: Destination, name: str) -> None:
        self._shared, self._destination, self._name = shared, destination, name
        self._observer = ProviderObserver(shared.recorder, destination)

    def take(self, head: bytes) -> tuple[HttpRequest, ForwardedRequest | RequestRefusal]:
        """
        Parse a request's head, and decide on it. CONNECT request, TLS handshake and Host header must name the same
        host.

        :raises ProtocolViolation: it cannot be parsed unambiguously; answer 400.
        """
        rule = self._destination.credentials.rule
        request, judged = self._judge(head)
        if self._name != rule.host or request.host not in (rule.host, f"{rule.host}:{rule.port}"):
            why = "the CONNECT request, the TLS handshake and the Host header name different hosts"
            return request, RequestRefusal(403, "host-mismatch", why)
        if why := self._shared.exhausted():
            return request, RequestRefusal(403, ENDED, why)
        return request, judged

    def denied(self, request: HttpRequest | None, refusal: RequestRefusal) -> RequestRefusal:
        """
        Record a refusal.

        :param request: ``None`` if it could not be parsed.
        :returns: the response.
        """
        rule = self._destination.credentials.rule
        method, path, host = ("", "", "") if request is None else (request.head.method, request.head.path, request.host)
        named = {"serverName": self._name, "hostHeader": host} if refusal.code == "host-mismatch" else {}
        try:
            self._shared.recorder.request(
                "deny",
                provider=rule.name,
                host=rule.host,
                method=method,
                path=path,
                rule=refusal.code,
                reason=refusal.reason,
                **named,
            )
        except AuditUnavailable:
            return UNRECORDED
        return refusal

    def start(
        self,
        client: ExchangeClient,
        request: HttpRequest,
        forward: ForwardedRequest,
        length: int | None,
        fields: tuple[str, ...] = (),
    ) -> Exchange | RequestRefusal:
        """
        Record an allowed request. From here on, the exchange handles it.

        :param length: size of the body in bytes; ``None`` if it is chunked.
        :param fields: names of fields of the body that are not sent.
        """
        credentials, head = self._destination.credentials, request.head
        rule, tokens, dropped = credentials.rule, credentials.tokens, _names(forward.dropped, fields)
        if why := self._shared.exhausted():  # the body may have taken a while
            return self.denied(request, RequestRefusal(403, ENDED, why))
        try:
            request_id = self._shared.recorder.request(
                "allow",
                provider=rule.name,
                host=rule.host,
                method=head.method,
                path=head.path,
                rule=forward.rule,
                dropped=dropped,
            )
        except AuditUnavailable:
            return UNRECORDED
        if dropped and (text := self._destination.omissions.after(dropped)):
            self._shared.recorder.tell(rule.name, text)
        end = body_fields(head.method, length)
        outgoing = Outgoing(request_id, lambda token: forward.lines(token) + end, length is None)

        def answer() -> AnswerRelay:
            scrubber = Scrubber(tokens.forms)
            return AnswerRelay(head.method, scrubber, UsageReader(rule.provider.count), request.last)

        return Exchange(client, outgoing, answer, self._destination.pool, self._observer, tokens)

    def response(self, refusal: RequestRefusal, request: HttpRequest | None, close: bool) -> bytes:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        return response(refusal, self._destination.credentials.rule.provider, close=close)

    def check(self, now: float) -> None:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""

    def close(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""

    def _judge(self, head: bytes) -> tuple[HttpRequest, ForwardedRequest | RequestRefusal]:
        request = read_request(head)
        return request, judge(request.head, self._destination.credentials)


def _names(headers: tuple[str, ...], fields: tuple[str, ...]) -> list[str]:
    """:returns: what is not sent, escaped."""
    if not headers and not fields:
        return []
    names = [f"header {name}" for name in headers] + [f"field {name}" for name in fields[:NAMES_RECORDED]]
    return [one_line(name, NAME_LIMIT) for name in names[:NAMES_RECORDED]]


def body_fields(method: str, length: int | None) -> bytes:
    """
    :param length: size of the body in bytes; ``None`` if it is chunked.
    :returns: the end of a request's head: what frames the body, and the blank line.
    """
    if length is None:
        return b"transfer-encoding: chunked\r\n\r\n"
    return b"content-length: %d\r\n\r\n" % length if length or method not in WITHOUT_BODY else b"\r\n"
