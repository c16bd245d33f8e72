"""The person's account at GitHub, for the agent's ``gh``."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from ironcurtain.home.github_section import GitHub
from ironcurtain.mitm_proxy.host_accounts import HostAccount, HostAccounts
from ironcurtain.secrets.redaction import Secret

API: Final = ("api.github.com", 443)
"""Where GitHub's API is."""

VARIABLE: Final = "GH_TOKEN"
"""Where ``gh`` looks for a token first."""

_PREFIX, _BYTES = "ghp_", 27
"""The shape of personal tokens: 36 letters and digits follow the prefix."""

_READS: Final = ("GET", "HEAD")
_PLAIN = r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?"
_FURTHER = r"(?!/(?:secret-scanning|compare)(?:/|$))"
"""Not of what shows secrets that were found, nor of what reads other repositories."""


def github_accounts(
    settings: GitHub, random_bytes: Callable[[int], bytes], fetch: Callable[[], Awaitable[Secret]]
) -> HostAccounts:
    """
    :param fetch: returns the real token.
    :returns: the account, if the settings have a token.
    """
    if not settings.token.has_source:
        return {}
    text = base64.b64encode(random_bytes(_BYTES), altchars=b"aZ").decode()
    fake = Secret(f"{_PREFIX}{text}", "made for GitHub")
    return {API: HostAccount("GitHub", fake, fetch, _reading(settings.repositories))}


def github_variables(accounts: HostAccounts) -> Mapping[str, str]:
    """:returns: the environment of an agent's programs that use the account."""
    if (account := accounts.get(API)) is None:
        return {}
    return {VARIABLE: account.fake.reveal(), "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1"}


def _reading(repositories: Sequence[str]) -> Callable[[str, str], bool]:
    names = "|".join(map(re.escape, repositories))
    wanted = re.compile(rf"/repos/(?:{names}){_FURTHER}{_PLAIN}", re.IGNORECASE)

    def reads(method: str, path: str) -> bool:
        return bool(repositories) and method in _READS and wanted.fullmatch(path) is not None

    return reads
