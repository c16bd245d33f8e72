"""What is recorded of each request, before it has any effect, and what the session hears of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ironcurtain.audit import AuditLog
from ironcurtain.errors import AuditUnavailable
from ironcurtain.llm.model import TokenUsage

# These two are made for each request, and a frozen dataclass takes six times as long to make as a named tuple.


class ProxiedRequest(NamedTuple):
    """
    A request was judged and recorded.

    :param provider: its name in the settings; empty if the host is none of a provider.
    :param host: which the agent asked for.
    :param method: and ``path``: without the query; empty if they could not be read.
    :param decision: allow or deny.
    :param rule: what allowed or denied it, in a stable word or as method and path.
    """

    request_id: str
    provider: str
    host: str
    method: str
    path: str
    decision: str
    rule: str
    reason: str


class ProxiedResponse(NamedTuple):
    """
    A request that was allowed is over.

    :param status: of the answer, zero if none came.
    :param duration: in seconds.
    :param size: bytes of the answer's body.
    :param usage: tokens; ``None`` if nothing is known of them.
    :param estimated: whether the provider did not tell all of them, so that we had to guess, rather too many than few.
    :param model: which answered, as the provider names it; empty if it did not say.
    :param error: why there is no whole answer; empty if there is.
    """

    request_id: str
    provider: str
    status: int
    duration: float
    size: int
    usage: TokenUsage | None
    estimated: bool
    model: str
    error: str


class ProviderTrouble(NamedTuple):
    """
    A provider refuses the key or the requests, or fails; agents try again for minutes without a word.

    :param provider: its name in the settings.
    :param text: what is wrong and what to do, for people.
    """

    provider: str
    text: str


class Troubles:
    """
    Puts into words how one provider fails: each status once, until it answers a request.

    :param host: of the provider.
    :param key: where its key came from, in words for people.
    """

    def __init__(self, host: str, key: str) -> None:
        self._host, self._key = host, key
        self._reported: set[int] = set()

    def after(self, status: int, fault: str) -> str:
        """
        A request is over.

        :param status: of the answer, zero if none came.
        :param fault: why the provider gave no whole answer; empty if it did, or if the agent was the reason.
        :returns: what to tell the person; empty if that is nothing, or nothing new.
        """
        text = fault or self._words(status)
        if not text:
            if HTTPStatus.OK <= status < HTTPStatus.BAD_REQUEST:
                self._reported.clear()
            return ""
        kind = 0 if fault else status
        if kind in self._reported:
            return ""
        self._reported.add(kind)
        return text

    def _words(self, status: int) -> str:
        if status == HTTPStatus.UNAUTHORIZED:
            return f"{self._host} refuses the API key (401): put a valid one into the {self._key}, and start again"
        if status == HTTPStatus.FORBIDDEN:
            return f"{self._host} refuses a request (403): the API key from the {self._key} may not do this"
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return f"{self._host} takes no more requests now (429): a limit of the account is reached"
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return f"{self._host} fails (HTTP {status}): it is overloaded or out of order; the agent may try again"
        return ""


USAGE_MEMBERS = ("input", "output", "cacheRead", "cacheWrite")
"""
The members of ``usage`` in a record of kind ``model-response``, in the order of the fields of
:class:`~ironcurtain.llm.model.TokenUsage`. The redactor looks closely, and slowly, at names with the word token.
"""

ModelTraffic = ProxiedRequest | ProxiedResponse | ProviderTrouble


class Recorder:
    """
    :param events: hears of each request and each answer; it must not raise.
    :param new_id: gives an id, unique in the audit log, with which those of all requests begin.
    """

    log = Logger()

    def __init__(
        self,
        audit: AuditLog,
        events: Callable[[ModelTraffic], None],
        new_id: Callable[[], str],
        clock: IReactorTime,
    ) -> None:
        self._audit, self._events, self._clock = audit, events, clock
        self._id, self._count = new_id(), itertools.count(1)

    def request(
        self,
        decision: str,
        *,
        provider: str,
        host: str,
        method: str = "",
        path: str = "",
        rule: str,
        reason: str = "",
        **more: str,
    ) -> str:
        """
        Record a request, before it has any effect.

        :param more: further members of the record.
        :returns: its id.
        :raises AuditUnavailable: it could not be recorded: then it must not happen.
        """
        request = ProxiedRequest(
            f"{self._id}-{next(self._count)}", provider, host, method, path, decision, rule, reason
        )
        self._audit.append(
            "model-request",
            requestId=request.request_id,
            provider=provider,
            host=host,
            method=method,
            path=path,
            decision=decision,
            rule=rule,
            reason=reason,
            **more,
        )
        self._events(request)
        return request.request_id

    def response(self, response: ProxiedResponse) -> None:
        """Record what came of a request. If that fails, the audit log says so, and no further request is made."""
        try:
            self._audit.append("model-response", **_fields(response))
        except AuditUnavailable as e:
            self.log.error("{error}", error=e)
        self._events(response)

    def trouble(self, provider: str, text: str) -> None:
        """Tell of a provider that fails; ``model-response`` has the record of it."""
        self._events(ProviderTrouble(provider, text))

    def now(self) -> float:
        """:returns: seconds of the clock."""
        return self._clock.seconds()


def _fields(response: ProxiedResponse) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "requestId": response.request_id,
        "status": response.status,
        "durationMs": round(response.duration * 1000, 1),
        "size": response.size,
    }
    if (usage := response.usage) is not None:
        fields["usage"] = {  # the USAGE_MEMBERS
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cacheRead": usage.cache_read_tokens,
            "cacheWrite": usage.cache_write_tokens,
        }
        fields["estimated"] = response.estimated
    if response.model:
        fields["model"] = response.model
    if response.error:
        fields["error"] = response.error
    return fields
