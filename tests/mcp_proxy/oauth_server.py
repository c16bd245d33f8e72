"""An MCP server that wants OAuth, and its authorization server, on one loopback address."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import urlencode

from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from tests.mcp_proxy.support import the_reactor

CANARY = "canary-of-oauth"


class OAuthServer(Resource):
    """
    :ivar lifetime: seconds for which the next access token is said to be valid.
    :ivar access: the access tokens that are accepted.
    :ivar refresh: the refresh token that is accepted, once.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.port: Any = the_reactor.listenTCP(0, Site(self), interface="127.0.0.1")
        self.origin = f"http://127.0.0.1:{self.port.getHost().port}"
        self.url = f"{self.origin}/mcp"
        self.lifetime = 3600
        self.access, self.refresh = set[str](), ""
        self.issued, self.refreshed, self.failing, self.modern = 0, 0, False, False
        self.challenge = ""
        self.sent: list[str] = []

    def browse(self, query: dict[str, list[str]]) -> str:
        """:returns: where a browser is sent by a person who agrees to the login."""
        self.challenge = query["code_challenge"][0]
        answer = {"code": f"{CANARY}-code", "state": query["state"][0], "iss": self.origin}
        return f"{query['redirect_uri'][0]}?{urlencode(answer)}"

    def render(self, request: Request) -> bytes:
        body = request.content.read() if request.content is not None else b""
        request.setHeader("content-type", "application/json")
        path = request.path.decode()
        if path == "/mcp":
            return self._mcp(request, body)
        if path.startswith("/.well-known/oauth-protected-resource"):
            found: dict[str, Any] = {"resource": self.url, "authorization_servers": [self.origin]}
        elif path.startswith("/.well-known/oauth-authorization-server"):
            found = {
                "issuer": self.origin,
                "authorization_endpoint": f"{self.origin}/as/authorize",
                "token_endpoint": f"{self.origin}/as/token",
                "registration_endpoint": f"{self.origin}/as/register",
                "code_challenge_methods_supported": ["S256"],
            }
        elif path == "/as/register":
            request.setResponseCode(201)
            found = {**json.loads(body), "client_id": "c1"}
        elif path == "/as/token":
            return self._token(request)
        else:
            request.setResponseCode(404)
            return b"{}"
        return json.dumps(found).encode()

    def _token(self, request: Request) -> bytes:
        given = {name.decode(): values[0].decode() for name, values in request.args.items()}
        if given["grant_type"] == "refresh_token":
            good = given["refresh_token"] == self.refresh
            self.refreshed += good
        else:
            digest = hashlib.sha256(given["code_verifier"].encode()).digest()
            good = base64.urlsafe_b64encode(digest).decode().rstrip("=") == self.challenge
        if self.failing or not good:
            request.setResponseCode(503 if self.failing else 400)
            return b'{"error": "invalid_grant"}'
        self.issued += 1
        self.access.add(f"{CANARY}-access-{self.issued}")
        self.refresh = f"{CANARY}-refresh-{self.issued}"
        tokens = {"access_token": f"{CANARY}-access-{self.issued}", "refresh_token": self.refresh}
        return json.dumps({**tokens, "token_type": "Bearer", "expires_in": self.lifetime}).encode()

    def _mcp(self, request: Request, body: bytes) -> bytes:
        token = (request.getHeader("authorization") or "").removeprefix("Bearer ")
        if token not in self.access:
            request.setResponseCode(401)
            where = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
            request.setHeader("www-authenticate", f'Bearer resource_metadata="{where}"')
            return b""
        self.sent.append(token)
        message = json.loads(body) if body else {}
        if "id" not in message:
            request.setResponseCode(202 if body else 405)
            return b""
        if message["method"] == ("initialize" if self.modern else "server/discover"):
            request.setResponseCode(404)
            return b""
        result: dict[str, Any]
        if message["method"] == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        elif message["method"] == "initialize":
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            }
        elif message["method"] == "tools/list":
            result = {"tools": [{"name": "echo", "inputSchema": {"type": "object", "properties": {"value": {}}}}]}
        else:
            result = {"content": [{"type": "text", "text": f"got {token}"}]}
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
