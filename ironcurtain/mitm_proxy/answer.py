"""A provider's answer on its way to the agent: bytes in, bytes out, as soon as they come."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.fields import words
from ironcurtain.http.framing import Counted
from ironcurtain.http.head import HeadReader, HttpResponse, read_response
from ironcurtain.llm.model import TokenUsage
from ironcurtain.mitm_proxy.scrub import Scrubber
from ironcurtain.providers.usage import UsageReader

_DROPPED = frozenset(
    (
        # between two neighbours (RFC 9110 section 7.6.1)
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        # made anew
        "content-length",
        # ways around us, or meant for whom the agent is not
        "alt-svc",
        "set-cookie",
        "set-cookie2",
    )
)
"""Headers of a response that the agent does not get, besides those that its ``Connection`` header names."""

_OK: Final = HTTPStatus.OK.value  # Python 3.11 takes long to look up and to compare members
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_PLAIN: Final = frozenset(("identity",))
_NONE: Final[list[str]] = []


class AnswerRelay:
    """
    :param method: of the request.
    :param scrubber: knows the real key, which the agent must not see, wherever the provider puts it.
    :param last: whether the agent is to be told that its connection closes afterwards.
    """

    def __init__(self, method: str, scrubber: Scrubber, usage: UsageReader, last: bool) -> None:
        self._method, self._usage, self._last = method, usage, last
        self._reader, self._scrubber = HeadReader(), scrubber
        self._response: HttpResponse | None = None
        self._chunked = self._is_stream = False
        self.status = 0
        """Zero until the response's head has come."""
        self.size = 0
        """Bytes of the body so far, as the provider sent them."""
        self.done = False
        """Whether the answer is whole."""
        self.beyond = False
        """Whether the provider sent more than its answer: then nothing that follows can be trusted."""

    @property
    def model(self) -> str:
        """Which model answered, as the provider names it; empty if it did not say."""
        return self._usage.model

    def usage(self, request_size: int) -> tuple[TokenUsage | None, bool]:
        """
        :param request_size: bytes of the request's body.
        :returns: the tokens used, ``None`` if nothing is known of them; and whether they are estimated, because the
            answer broke off, or is a stream that does not tell.
        """
        counted = self._usage.usage
        if self.status != _OK or (self.done and not self._is_stream):
            return counted, False
        used = self._usage.estimate(request_size)
        return used, used != counted

    @property
    def reusable(self) -> bool:
        """Whether the connection to the provider can serve another request."""
        return self.done and not self.beyond and self._response is not None and not self._response.last

    def feed(self, data: bytes) -> bytes:
        """
        Take bytes from the provider, in any slicing.

        :returns: what the agent is to get now.
        :raises ProtocolViolation: they are no answer to be understood in one way, or it cannot be searched for the key.
        """
        head = b""
        while self._response is None:
            if (found := self._reader.feed(data)) is None:
                return b""
            head, data = self._take_head(*found)
        return head + self._take_body(self._response, data)

    def ended(self, cleanly: bool) -> bytes | None:
        """
        The provider's connection ended.

        :param cleanly: whether the provider said so, as TLS wants it; if not, somebody may have cut it.
        :returns: the rest for the agent, or ``None`` if the answer is not whole.
        """
        response = self._response
        if response is None or not response.framing.may_end or not cleanly:
            return None
        self.done = True
        return self._encode(self._scrubber.flush()) + b"0\r\n\r\n"

    def _take_head(self, head: bytes, rest: bytes) -> tuple[bytes, bytes]:
        response = read_response(head, self._method)
        if response.status < 200:
            if response.status == HTTPStatus.SWITCHING_PROTOCOLS:
                raise ProtocolViolation("http", "the provider switched to another protocol without being asked")
            return b"", rest
        named = response.named
        if not _PLAIN.issuperset(words(named.get("content-encoding", _NONE))):
            raise ProtocolViolation("http", "the answer is compressed, though we asked for it plain")
        self._response, self.status = response, response.status
        self._is_stream = any(map(_is_stream, words(named.get("content-type", _NONE))))
        self._chunked = not isinstance(response.framing, Counted)
        return self._head(response, words(named.get("connection", _NONE))), rest

    def _take_body(self, response: HttpResponse, data: bytes) -> bytes:
        framing = response.framing
        payload, used = framing.feed(data) if data and not framing.done else (b"", 0)
        self.size += len(payload)
        self.done, self.beyond = framing.done, used < len(data)
        if payload:
            self._usage.feed(payload)
            payload = self._scrubber.feed(payload, self.done)
        elif self.done:
            payload = self._scrubber.flush()
        out = self._encode(payload)
        return out + b"0\r\n\r\n" if self.done and self._chunked else out

    def _head(self, response: HttpResponse, hops: list[str]) -> bytes:
        dropped = _DROPPED.union(hops) if hops else _DROPPED
        lines = [f"{name}: {value}\r\n" for name, value in response.fields if name not in dropped]
        if response.length is not None:
            lines.append(f"content-length: {response.length}\r\n")
        elif self._chunked:
            lines.append("transfer-encoding: chunked\r\n")
        if self._last:
            lines.append("connection: close\r\n")
        head = f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, '')}\r\n{''.join(lines)}\r\n"
        return self._scrubber.feed(head.encode("latin-1"), last=True)

    def _encode(self, payload: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(payload), payload) if payload and self._chunked else payload


def _is_stream(content_type: str) -> bool:
    return content_type.startswith("text/event-stream")
