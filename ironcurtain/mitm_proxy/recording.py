"""Record each request before it has any effect, and send events about it to the session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import AuditUnavailable
from ironcurtain.llm.model import TokenUsage
from ironcurtain.network.refusal_records import RefusalRecords

_OK: Final = HTTPStatus.OK.value  # looking up and comparing enum members is slow in Python 3.11
_BAD_REQUEST: Final = HTTPStatus.BAD_REQUEST.value

# These are created for each request, and creating a frozen dataclass takes six times as long as a named tuple.


class ProxiedRequest(NamedTuple):
    """
    A request was judged and recorded.

    :param provider: its name in the settings; empty if the host belongs to no provider.
    :param host: the host that the agent asked for.
    :param method: and ``path``: without the query; empty if the request could not be parsed.
    :param decision: allow or deny.
    :param rule: what allowed or denied it: a stable code, or method and path.
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
    An allowed request ended.

    :param status: status of the response, zero if there is none.
    :param duration: in seconds.
    :param size: size of the response's body in bytes.
    :param usage: tokens; ``None`` if unknown.
    :param estimated: whether the provider did not report all of them, so that some are estimated, rather high than low.
    :param model: the model that answered, as the provider names it; empty if unknown.
    :param error: why the response is incomplete; empty if it is complete.
    :param cut: whether the model stopped at the limit of output tokens.
    :param wait: seconds until a limit of the account ends, as the provider says; ``None``: it does not say, or there is
        none.
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
    cut: bool = False
    wait: float | None = None


class ProviderNotice(NamedTuple):
    """
    A provider refuses the key or the requests, or fails, while agents silently retry for minutes; or it gets requests
    without a part that the agent sent.

    :param provider: its name in the settings.
    :param text: what is wrong and what to do, for people; names of the agent's are escaped.
    """

    provider: str
    text: str


OMISSIONS_TOLD: Final = 20
"""Maximum number of names that are reported for one provider; an agent can make up any number."""


class Troubles:
    """
    Describes the failures of one provider. Each status is reported once until a request succeeds.

    :param host: the provider's host.
    :param payer: which key or account is used, in words for people.
    :param advice: what to do if it is refused, as the end of a sentence.
    """

    def __init__(self, host: str, payer: str, advice: str) -> None:
        self._host, self._payer, self._advice = host, payer, advice
        self._reported: set[int] = set()

    def after(self, status: int, fault: str, wait: str = "") -> str:
        """
        A request ended.

        :param status: status of the response, zero if there is none.
        :param fault: why the provider gave no complete response; empty if it did, or if the agent was the cause.
        :param wait: until when a limit is reached, for people; empty if unknown.
        :returns: a message for the user; empty if there is nothing new to report.
        """
        if _OK <= status < _BAD_REQUEST and not fault:
            self._reported.clear()
            return ""
        text = fault or self._words(status, wait)
        if not text:
            return ""
        kind = 0 if fault else status
        if kind in self._reported:
            return ""
        self._reported.add(kind)
        return text

    def _words(self, status: int, wait: str) -> str:
        if status == HTTPStatus.UNAUTHORIZED:
            return f"{self._host} refuses {self._payer} (401): {self._advice}"
        if status == HTTPStatus.FORBIDDEN:
            return f"{self._host} refuses a request (403): {self._payer} does not permit this"
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            limit = f"a limit of the account is reached{wait and f', {wait}'}"
            return f"{self._host} refuses further requests (429): {limit}"
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return f"{self._host} fails (HTTP {status}): it is overloaded or broken; the agent may try again"
        return ""


class Omissions:
    """
    Describes what is left out of requests to one provider. Each name is reported once.

    :param host: the provider's host.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._reported: set[str] = set()
        self._full = False

    def after(self, names: Sequence[str]) -> str:
        """
        A request is sent without these headers and fields.

        :param names: escaped.
        :returns: a message for the user; empty if there is nothing new to report.
        """
        new = [name for name in names if name not in self._reported]
        if not new or self._full:
            return ""
        told = new[: OMISSIONS_TOLD - len(self._reported)]
        self._reported.update(told)
        self._full = len(told) < len(new)
        text = ", ".join([*told, "others"] if self._full else told)
        return f"left out of requests to {self._host}, as unknown: {text}"


USAGE_MEMBERS = ("input", "output", "cacheRead", "cacheWrite")
"""
The members of ``usage`` in a record of kind ``model-response``, in the order of the fields of
:class:`~ironcurtain.llm.model.TokenUsage`. Their names avoid the word token, which the redactor inspects closely and
slowly.
"""

ModelTraffic = ProxiedRequest | ProxiedResponse | ProviderNotice


class Recorder:
    """
    :param events: called with each request and each response; it must not raise.
    :param new_id: returns an id, unique in the audit log; the ids of all requests begin with it.
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
        self._refusals = RefusalRecords(self._unrecorded)

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
        dropped: Sequence[str] = (),
        **more: str,
    ) -> str:
        """
        Record a request, before it has any effect. Refusals beyond a limit are only counted.

        :param dropped: names of headers and fields that are not sent, for people.
        :param more: further members of the record.
        :returns: its id; empty for a refusal that is only counted.
        :raises AuditUnavailable: it could not be recorded, so it must not be made.
        """
        if decision == "deny" and not self._refusals.admit(rule, self._clock.seconds()):
            return ""
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
            **({"dropped": list(dropped)} if dropped else {}),
            **more,
        )
        self._events(request)
        return request.request_id

    def response(self, response: ProxiedResponse) -> None:
        """Record the outcome of a request. If that fails, the audit log reports it, and no further request is made."""
        try:
            self._audit.append_outcome("model-response", **_fields(response))
        except AuditUnavailable as e:
            self.log.error("{error}", error=e)
        self._events(response)

    def tell(self, provider: str, text: str) -> None:
        """Report something about a provider, which the records of its requests contain."""
        self._events(ProviderNotice(provider, text))

    def now(self) -> float:
        """:returns: seconds of the clock."""
        return self._clock.seconds()

    def end(self) -> None:
        """Record the number of refusals that were only counted."""
        self._refusals.end()

    def _unrecorded(self, rule: str, count: int) -> None:
        with suppress(AuditUnavailable):  # the audit log reports the error itself
            self._audit.append("unrecorded", rule=rule, count=count)


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
