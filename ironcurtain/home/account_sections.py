"""The tables ``[accounts.NAME]`` of ``config.toml``: logins that pay for models, apart from keys of providers."""

from __future__ import annotations

from typing import Literal

from ironcurtain.home.sections import Section

AccountName = Literal["claude", "chatgpt", "google", "copilot"]
"""The accounts to which one logs in, as ``ironcurtain login`` names them."""


class TokenSettings(Section, frozen=True):
    """
    The source of a token that nothing here renews: at most one of three; a literal token is refused.

    :param env: name of an environment variable.
    :param command: a command line that prints it, run without a shell.
    :param file: a file with mode 0600 that contains it.
    """

    env: str = ""
    command: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.env, self.command, self.file))) > 1:
            raise ValueError("give one of env, command and file")

    @property
    def has_source(self) -> bool:
        """Whether one of the three is given."""
        return bool(self.env or self.command or self.file)


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
    token: TokenSettings = TokenSettings()

    def __post_init__(self) -> None:
        if self.source and self.token.has_source:
            raise ValueError("give either source or token")
        if self.file and self.source != "cli":
            raise ValueError('file has an effect only together with source = "cli"')
