"""The servers at which the agents' own programs log in, played on one loopback port."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.endpoints import SSL4ServerEndpoint
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from ironcurtain.accounts.login_programs import PROGRAMS
from tests.accounts.samples import CANARY, CLAUDE_ACCESS, CLAUDE_REFRESH, chatgpt_id, jwt
from tests.mitm_proxy.waiting import the_reactor
from tests.model_stub.certificates import Authority

FAR = 1_900_000_000

ANSWERS: dict[str, Any] = {
    "platform.claude.com/v1/oauth/token": {
        "access_token": CLAUDE_ACCESS,
        "refresh_token": CLAUDE_REFRESH,
        "expires_in": 28800,
        "scope": "user:inference user:profile",
        "account": {"uuid": "u", "email_address": "ada@example.com"},
    },
    "api.anthropic.com/api/oauth/profile": {
        "account": {"uuid": "u", "email": "ada@example.com", "has_claude_max": True},
        "organization": {"uuid": "o", "organization_type": "claude_max", "rate_limit_tier": "default"},
    },
    "api.anthropic.com/api/oauth/claude_cli/roles": {"organization_role": "admin", "organization_name": "O"},
    "auth.openai.com/api/accounts/deviceauth/usercode": {
        "device_auth_id": "d",
        "user_code": "ABCD-1234",
        "interval": "1",
        "expires_at": "2100-01-01T00:00:00Z",
    },
    "auth.openai.com/api/accounts/deviceauth/token": {
        "authorization_code": "code",
        "code_challenge": "c",
        "code_verifier": "v",
    },
    "auth.openai.com/oauth/token": {
        "id_token": chatgpt_id(),
        "access_token": jwt(exp=FAR),
        "refresh_token": f"{CANARY}-r",
    },
    "oauth2.googleapis.com/token": {
        "access_token": f"ya29.{CANARY}",
        "refresh_token": f"1//{CANARY}",
        "expires_in": 3599,
        "scope": "openid",
        "token_type": "Bearer",
        "id_token": jwt(email="ada@example.com"),
    },
    "www.googleapis.com/oauth2/v2/userinfo": {"email": "ada@example.com", "id": "1"},
    "github.com/login/device/code": {
        "device_code": "d",
        "user_code": "WXYZ-1234",
        "verification_uri": "https://github.com/login/device",
        "expires_in": 900,
        "interval": 1,
    },
    "github.com/login/oauth/access_token": {"access_token": f"gho_{CANARY}", "token_type": "bearer", "scope": "read"},
}
"""By host and path; anything else is answered with 404."""


class LoginStub(Resource):
    """:ivar asked: hosts and paths of the requests."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.authority = Authority.make("login servers under test")
        self._port: Any = None

    async def start(self) -> int:
        """:returns: the port."""
        creator = self.authority.server(*(host for program in PROGRAMS.values() for host in program.hosts))
        self._port = await SSL4ServerEndpoint(the_reactor, 0, creator, interface="127.0.0.1").listen(Site(self))
        return int(self._port.getHost().port)

    async def stop(self) -> None:
        """Stop listening."""
        await self._port.stopListening()

    def render(self, request: Request) -> bytes:
        """Answer any request."""
        where = f"{(request.getHeader('host') or '').partition(':')[0]}{request.path.decode()}"
        self.asked.append(where)
        request.setHeader("content-type", "application/json")
        if where not in ANSWERS:
            request.setResponseCode(404)
        return json.dumps(ANSWERS.get(where, {})).encode()
