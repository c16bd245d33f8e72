"""Login files as the agents' programs write them, with tokens that tests search for."""

from __future__ import annotations

import base64
import json
from typing import Any

CANARY = "canary-of-accounts"
"""Part of every token."""

CLAUDE_ACCESS, CLAUDE_REFRESH = f"sk-ant-oat01-{CANARY}-a", f"sk-ant-ort01-{CANARY}-r"
OPENAI_AUTH = "https://api.openai.com/auth"


def jwt(**said: Any) -> str:
    """:returns: an unsigned JWT."""
    parts = (json.dumps(part).encode() for part in ({"alg": "RS256"}, {**said, "jti": CANARY}))
    return ".".join((*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), "sig"))


def claude_file(**changes: Any) -> bytes:
    """:returns: ``.credentials.json`` of Claude Code."""
    login = {
        "accessToken": CLAUDE_ACCESS,
        "refreshToken": CLAUDE_REFRESH,
        "expiresAt": 1_800_000_000_000,
        "refreshTokenExpiresAt": 1_802_000_000_000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
        "rateLimitTier": "default",
    }
    return json.dumps({"claudeAiOauth": {**login, **changes}}).encode()


def chatgpt_id() -> str:
    """:returns: an id token of a ChatGPT account."""
    return jwt(email="ada@example.com", **{OPENAI_AUTH: {"chatgpt_plan_type": "plus", "chatgpt_account_id": "acc-id"}})


def codex_file(**changes: Any) -> bytes:
    """:returns: ``auth.json`` of Codex."""
    tokens = {
        "id_token": chatgpt_id(),
        "access_token": jwt(exp=1_800_000_000),
        "refresh_token": f"{CANARY}-r",
        "account_id": "acc-1",
    }
    whole = {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": {**tokens, **changes}, "last_refresh": "2026"}
    return json.dumps(whole).encode()


def google_file(**changes: Any) -> bytes:
    """:returns: ``oauth_creds.json`` of Gemini CLI."""
    whole = {
        "access_token": f"ya29.{CANARY}",
        "refresh_token": f"1//{CANARY}",
        "scope": "openid",
        "token_type": "Bearer",
        "id_token": jwt(email="ada@example.com"),
        "expiry_date": 1_800_000_000_000,
    }
    return json.dumps({**whole, **changes}).encode()


def opencode_file(**providers: Any) -> bytes:
    """:returns: ``auth.json`` of OpenCode, with a login at GitHub and a ChatGPT plan."""
    openai = {"type": "oauth", "access": jwt(exp=1_800_000_000), "refresh": f"{CANARY}-r", "accountId": "acc-1"}
    copilot = {"type": "oauth", "access": f"gho_{CANARY}", "refresh": f"gho_{CANARY}", "expires": 0}
    whole = {"openai": {**openai, "expires": 1_800_000_000_000}, "github-copilot": copilot, **providers}
    return json.dumps(whole).encode()
