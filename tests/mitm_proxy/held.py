"""What a session has for one provider, paid by an API key."""

from __future__ import annotations

import secrets
import time

from ironcurtain.accounts.source import api_key
from ironcurtain.mitm_proxy.account_tokens import AccountTokens
from ironcurtain.mitm_proxy.fake_tokens import fake_token
from ironcurtain.mitm_proxy.judgement import Credentials
from ironcurtain.providers.rules import ProviderRule
from ironcurtain.secrets.redaction import Redactor, Secret


def with_key(rule: ProviderRule, real: str) -> Credentials:
    """:param real: the key."""
    tokens = AccountTokens(api_key(Secret(real)), Redactor(), time.time)
    return Credentials(rule, fake_token(rule, secrets.token_bytes), tokens)
