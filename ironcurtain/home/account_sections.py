"""The tables ``[accounts.NAME]`` of ``config.toml``: logins that pay for models, apart from keys of providers."""

from __future__ import annotations

from typing import Literal

from ironcurtain.home.sections import SecretSource, Section

AccountName = Literal["claude", "chatgpt", "google", "copilot"]
"""The accounts to which one logs in, as ``ironcurtain login`` names them."""


class AccountSettings(Section, frozen=True):
    """
    One account.

    :param source: ``login``: the login that IronCurtain keeps and renews (``ironcurtain login``); ``cli``: the login of
        the agent's own program on this machine, which is read and never renewed or changed. Empty: ``login`` if there
        is one.
    :param file: where that program keeps its login, if not at its usual place.
    :param token: a token instead of a login.
    """

    source: Literal["", "login", "cli"] = ""
    file: str = ""
    token: SecretSource = SecretSource()

    def __post_init__(self) -> None:
        if self.source and self.token.has_source:
            raise ValueError("give either source or token")
        if self.file and self.source != "cli":
            raise ValueError('file has an effect only together with source = "cli"')
