"""The table ``[github]`` of ``config.toml``: the person's account at GitHub, for agents' ``gh``."""

from __future__ import annotations

import re

from ironcurtain.home.sections import SecretSource, Section

_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")


class GitHub(Section, frozen=True):
    """
    :param token: the source of the token; agents get a fake one, which stands for it in requests to GitHub's API.
    :param repositories: ``OWNER/NAME`` of those that agents may read with it without a question.
    """

    token: SecretSource = SecretSource()
    repositories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.repositories:
            if not _REPOSITORY.fullmatch(name) or name.endswith(("/.", "/..")):
                raise ValueError(f"a repository is OWNER/NAME, and {name!r} is not")
