"""
Accounts of the person at hosts that belong to no provider: agents get a fake token, which is replaced by the real one.

It is replaced in the header ``Authorization`` of requests to that host only, each of which the judge is told about. In
all that the host answers the real one is overwritten, so no answer may be compressed or partial.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from ironcurtain.mitm_proxy.judgement import ForwardedRequest
from ironcurtain.mitm_proxy.scrub import KeyForms, Scrubber
from ironcurtain.providers.bodies import read_json
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.secrets.redaction import Redactor, Secret

UNSEARCHABLE: Final = frozenset(("accept-encoding", "if-range", "range"))
"""Headers that ask for answers in which no token would be recognised."""

SCHEMES: Final = ("bearer", "token")
"""How tokens are sent, in lower case."""

_HEADER: Final = "authorization"

BODY_LIMIT: Final = 1024 * 1024
"""Maximum size in bytes of a body that is sent with a token: of a longer one, nobody reads what it does."""


def read_body(data: bytes) -> Any | RequestRefusal:
    """
    :param data: the body of a request that gets a token.
    :returns: what it says, to be shown, or its refusal if others could read something else in it.
    """
    value = read_json(data)
    if isinstance(value, RequestRefusal):
        return value
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # of numbers and characters that are none
    except (ValueError, RecursionError) as e:
        return RequestRefusal(400, "malformed-body", f"the request's body is not unambiguous JSON: {e}")
    return value


class HostAccount(msgspec.Struct):
    """
    :param name: for people: "GitHub".
    :param fake: the token that agents have.
    :param fetch: returns the real one.
    :param reads: returns whether a request, by method and path, needs no question.
    """

    name: str
    fake: Secret
    fetch: Callable[[], Awaitable[Secret]]
    reads: Callable[[str, str], bool]
    _real: Secret | None = None
    _forms: KeyForms | None = None

    async def open(self, redactor: Redactor) -> None:
        """
        Fetch the token.

        :raises ConfigurationError: there is none.
        """
        self._real = await self.fetch()
        self._forms = KeyForms(self._real)
        redactor.add(self._real)
        redactor.add_own(self.fake)

    def used_by(self, request: ForwardedRequest) -> bool:
        """:returns: whether a request has the fake token where it is replaced."""
        return any(self._scheme(name, value) for name, value in request.kept)

    def paid(self, request: ForwardedRequest) -> ForwardedRequest:
        """
        :returns: a request for a plain answer, with the real token in place of the fake one if it has that. It must not
            be shown.
        """
        assert self._real is not None, "open it first"
        real = self._real.reveal()
        kept = tuple(
            (name, f"{scheme} {real}" if (scheme := self._scheme(name, value)) else value)
            for name, value in request.kept
            if name not in UNSEARCHABLE
        )
        return ForwardedRequest(
            request.endpoint, request.target, kept, request.bodies, request.dropped, request.payment
        )

    def scrubber(self) -> Scrubber:
        """:returns: what overwrites the real token in one response."""
        assert self._forms is not None, "open it first"
        return Scrubber(self._forms)

    def codings(self, request: ForwardedRequest) -> RequestRefusal | None:
        """:returns: the refusal of a request whose body cannot be shown as it is sent."""
        if any(name == "content-encoding" and value.lower() != "identity" for name, value in request.kept):
            why = f"the body of a request with the {self.name} token must not be compressed: it is shown to a person"
            return RequestRefusal(415, "content-encoding", why)
        return None

    def leaks(self, head: bytes) -> bool:
        """:returns: whether the fake token is in a request's head, also elsewhere than in that header, or twice."""
        fake = self.fake.reveal().encode()
        return head.count(fake) > (1 if _authorized(head, fake) else 0)

    def _scheme(self, name: str, value: str) -> str:
        scheme, _, token = value.partition(" ")
        return scheme if name == _HEADER and scheme.lower() in SCHEMES and token == self.fake.reveal() else ""


HostAccounts = Mapping[tuple[str, int], HostAccount]
"""By host in canonical form, and port."""


def _authorized(head: bytes, fake: bytes) -> bool:
    lines = [line for line in head.split(b"\r\n") if fake in line]
    return len(lines) == 1 and lines[0].lower().startswith(b"authorization:")
