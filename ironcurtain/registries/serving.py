"""Answer the requests of agents for the hosts of a registry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus

from ironcurtain.errors import AuditUnavailable
from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.fetching import FetchFailed, Unusable
from ironcurtain.registries.recording import PackageRecorder, RecordedRefusal
from ironcurtain.registries.registry import Registry, local
from ironcurtain.registries.store import UNUSABLE

UNRECORDED = RequestRefusal(503, "audit-unavailable", "the audit log cannot be written: no further requests are made")
"""The response to every request while nothing can be recorded."""

_READING = ("GET", "HEAD")


class RegistryResponder:
    """
    Answers for one host (see :class:`~ironcurtain.network.responder.Responder`).

    :param name: of the registry, in the settings.
    :param recorder: records the refusals that the registry has not recorded.
    :param host: one of the registry's, with the port if it is not 443.
    """

    def __init__(self, name: str, registry: Registry, host: str, recorder: PackageRecorder) -> None:
        self._name, self._registry, self._host, self._recorder = name, registry, host, recorder

    async def respond(self, head: RequestHead) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.network.responder.Responder`."""
        try:
            answer = await self._answer(head)
            if isinstance(answer, LocalResponse):
                return await _without_body(answer) if head.method == "HEAD" else answer
            # What does not exist is no refusal, and the request for it is recorded.
            if isinstance(answer, RecordedRefusal) or answer.status == HTTPStatus.NOT_FOUND:
                return answer
            return self._recorder.refuse(answer, "", "", f"{head.method} {head.path}")
        except AuditUnavailable:
            return UNRECORDED

    async def _answer(self, head: RequestHead) -> LocalResponse | RequestRefusal:
        quiet = self._registry.quiet
        if quiet is not None and quiet.fullmatch(head.path):
            return local(404, "", "application/json", b'{"error":"IronCurtain: not offered here"}')
        if head.method not in _READING:
            why = f"{self._name} is open read-only, for installing: publishing and login are not offered"
            return RequestRefusal(403, "registry-read-only", f"{why}. Ask the user to do it.")
        try:
            return await self._registry.answer(self._host, head)
        except Unusable as e:
            shown = "" if e.package else f"{head.method} {head.path}"
            return self._recorder.refuse(RequestRefusal(403, UNUSABLE, f"{e}."), e.package, "", shown)
        except FetchFailed as e:
            return RequestRefusal(502, "registry-failed", f"{e}.")


async def _without_body(answer: LocalResponse) -> LocalResponse:
    close = getattr(answer.body, "aclose", None)
    if close is not None:
        await close()
    return LocalResponse(answer.status, answer.phrase, answer.headers, answer.length, _nothing())


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield
