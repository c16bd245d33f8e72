"""
Registries that the settings do not open: whoever allows a connection to one of their hosts opens it as a registry.

So an approval of a host means what installing needs, and not everything that can be sent there.
"""

from __future__ import annotations

from ironcurtain.http.head import RequestHead
from ironcurtain.network.judge import NetworkJudge
from ironcurtain.network.responder import LocalResponse, Responder
from ironcurtain.providers.provider import RequestRefusal


class JudgedResponder:
    """
    Asks before each request, since answers hold for a while only (see
    :class:`~ironcurtain.network.responder.Responder`).

    :param host: which ``responder`` answers for, as is ``port``.
    """

    def __init__(self, judge: NetworkJudge, host: str, port: int, responder: Responder) -> None:
        self._judge, self._host, self._port, self._responder = judge, host, port, responder

    async def respond(self, head: RequestHead) -> LocalResponse | RequestRefusal:
        """See :class:`~ironcurtain.network.responder.Responder`."""
        refusal = await self._judge.connect(self._host, self._port)
        if refusal is None:
            url = f"https://{self._host}:{self._port}{head.path}"
            refusal = await self._judge.request(head.method, url)
        return await self._responder.respond(head) if refusal is None else refusal
