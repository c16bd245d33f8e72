"""The token endpoints of the providers on a loopback port, as they answer renewals, and a process that asks them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import SSL4ServerEndpoint
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from tests.accounts.samples import CANARY
from tests.http.direct import DIRECT
from tests.mitm_proxy.waiting import the_reactor
from tests.model_stub.certificates import Authority

PLACES = {
    ("platform.claude.com", "/v1/oauth/token"): "application/json",
    ("auth.openai.com", "/oauth/token"): "application/json",
    ("oauth2.googleapis.com", "/token"): "application/x-www-form-urlencoded",
}
"""Host and path of each endpoint, and the form of its requests."""

CHILD = """
import os, signal, sys, time
from pathlib import Path
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from ironcurtain.accounts.kept import KeptLogins
from ironcurtain.accounts.kept_account import KeptAccount
from ironcurtain.secrets.redaction import Redactor
from tests.accounts.stub import stub_endpoint

directory, port, ca_file = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
post = stub_endpoint(reactor, port, ca_file).post
account = KeptAccount(KeptLogins(directory).of("claude"), post, reactor, time.time, Redactor())

async def main():
    print("ready", flush=True)
    token = await account.refreshed(account.current())
    if sys.argv[4] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print("renewed", token.secret.reveal(), flush=True)

Deferred.fromCoroutine(main()).addErrback(lambda failure: print("failed", failure.value, flush=True)).addBoth(
    lambda _: reactor.stop())
reactor.run()
"""


def stub_endpoint(reactor: Any, port: int, ca_file: str) -> Any:
    """:returns: a :class:`~ironcurtain.accounts.token_endpoint.TokenEndpoint` that takes the stub for every host."""
    from twisted.internet.endpoints import TCP4ClientEndpoint, wrapClientTLS

    from ironcurtain.accounts.token_endpoint import TokenEndpoint
    from ironcurtain.http.outbound import Outbound
    from ironcurtain.http.trust import VerifyingPolicy

    policy = VerifyingPolicy(ca_file)

    class ToStub(Outbound):
        def endpointForURI(self, uri: Any) -> Any:
            return wrapClientTLS(
                policy.creatorForNetloc(uri.host, uri.port), TCP4ClientEndpoint(reactor, "127.0.0.1", port)
            )

    return TokenEndpoint(ToStub(reactor, policy, DIRECT))


class TokenStub(Resource):
    """
    :ivar valid: the refresh token that is accepted, once; using an older one ends the login, as providers do it.
    :ivar holding: whether answers wait for :meth:`release`.
    """

    isLeaf = True

    def __init__(self, valid: str) -> None:
        super().__init__()
        self.valid, self.issued, self.reused, self.holding = valid, 0, 0, False
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        self.held: list[tuple[Request, bytes]] = []
        self.authority = Authority.make("token endpoints under test")
        self._port: Any = None

    async def start(self) -> int:
        """:returns: the port."""
        creator = self.authority.server(*(host for host, _ in PLACES))
        self._port = await SSL4ServerEndpoint(the_reactor, 0, creator, interface="127.0.0.1").listen(Site(self))
        return int(self._port.getHost().port)

    async def stop(self) -> None:
        """Stop listening."""
        await self._port.stopListening()

    def render_POST(self, request: Request) -> Any:
        """Answer a renewal."""
        host = (request.getHeader("host") or "").partition(":")[0]
        form = PLACES.get((host, request.path.decode()))
        body = request.content.read().decode() if request.content is not None else ""
        if form is None or request.getHeader("content-type") != form:
            request.setResponseCode(404)
            return b"{}"
        fields = json.loads(body) if form.endswith("json") else {k: v[0] for k, v in parse_qs(body).items()}
        self.requests.append((host, fields))
        answer = self._answer(request, fields)
        if self.holding:
            self.held.append((request, answer))
            return NOT_DONE_YET
        return answer

    def _answer(self, request: Request, fields: Mapping[str, str]) -> bytes:
        request.setHeader("content-type", "application/json")
        if fields["refresh_token"] != self.valid or fields["grant_type"] != "refresh_token":
            self.reused += 1
            request.setResponseCode(400)
            return json.dumps({"error": "invalid_grant", "error_description": CANARY}).encode()
        self.issued += 1
        self.valid = f"{CANARY}-r{self.issued}"
        fresh = {"access_token": f"{CANARY}-a{self.issued}", "refresh_token": self.valid, "expires_in": 3600}
        return json.dumps({**fresh, "token_type": "Bearer"}).encode()

    def release(self) -> None:
        """Send the answers that wait."""
        self.holding = False
        for request, answer in self.held:
            request.write(answer)
            request.finish()


class Child(ProcessProtocol):
    """
    :param then: ``die``: it is killed as soon as it has a new token.
    :ivar said: what it printed.
    """

    def __init__(self, directory: Path, port: int, ca_file: Path, then: str) -> None:
        self.said = ""
        self.ended: Deferred[None] = Deferred()
        argv = [sys.executable, "-c", CHILD, str(directory), str(port), str(ca_file), then]
        top = str(Path(__file__).parent.parent.parent)
        self.process: Any = the_reactor.spawnProcess(self, argv[0], argv, {**os.environ, "PYTHONPATH": top}, top)

    def outReceived(self, data: bytes) -> None:
        """It printed."""
        self.said += data.decode()

    def errReceived(self, data: bytes) -> None:
        """It complained."""
        self.said += data.decode()

    def processEnded(self, reason: Failure) -> None:
        """It ended."""
        self.ended.callback(None)
