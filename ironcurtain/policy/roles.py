"""
What a tool does with an argument.

The names are those of the compiled policies and annotations that are in use, so that both can be moved here unchanged.
"""

from __future__ import annotations

from typing import Final, Literal

Role = Literal[
    "read-path",
    "write-path",
    "delete-path",
    "write-history",
    "delete-history",
    "fetch-url",
    "git-remote-url",
    "github-owner",
    "github-repo",
    "proxy-domain",
    "branch-name",
    "commit-message",
    "email-address",
    "email-body",
    "share-permission",
    "none",
]
"""One meaning of an argument. An argument may have several."""

PATH_ROLES: Final[frozenset[str]] = frozenset(
    ("read-path", "write-path", "delete-path", "write-history", "delete-history")
)
"""Values are files, directories, or repositories by their directory."""

WRITING_ROLES: Final[frozenset[str]] = PATH_ROLES - {"read-path"}
"""A server with none of these in its tools needs only to read."""

REPOSITORY_ROLES: Final[frozenset[str]] = PATH_ROLES - {"write-path"}
"""On a git server these name a repository that exists; ``write-path`` names one that is to be made."""

URL_ROLES: Final[frozenset[str]] = frozenset(("fetch-url", "git-remote-url"))
"""Values are addresses, and rules compare their hosts."""

IDENTIFIER_ROLES: Final[frozenset[str]] = frozenset(("github-owner", "github-repo", "proxy-domain"))
"""Values are names that rules compare with lists."""

RESOURCE_ROLES: Final[frozenset[str]] = PATH_ROLES | URL_ROLES | IDENTIFIER_ROLES
"""Each of these is judged by itself. The rest only say what an argument is, unless a list in a rule names them."""

DOMAIN_ROLES: Final[frozenset[str]] = URL_ROLES | {"proxy-domain"}
"""A ``domains`` condition may speak of these."""

FREE_TEXT_ROLES: Final[frozenset[str]] = frozenset(("commit-message", "email-body"))
"""Values are prose: nothing in them is read as an option."""
