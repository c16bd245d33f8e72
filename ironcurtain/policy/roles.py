"""
Argument roles: what a tool does with an argument.

The names are those of existing compiled policies and annotations, so that these work unchanged.
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
    "network-party",
    "http-method",
    "app",
    "screen",
    "audio-source",
    "ui-text",
    "none",
]
"""A role of an argument. An argument can have several."""

PARTY_ROLE: Final = "network-party"
"""The role of who wants a connection."""

METHOD_ROLE: Final = "http-method"
"""The role of an HTTP request's method."""

LIMITING_ROLES: Final[frozenset[str]] = frozenset((PARTY_ROLE, METHOD_ROLE, "screen", "audio-source", "ui-text"))
"""Roles that say more about a call. A list condition on these alone limits a rule about any other role."""

UNKNOWN_ROLE: Final = "unknown"
"""What records and questions call the use of a value by a tool without annotation. No argument has it."""

PATH_ROLES: Final[frozenset[str]] = frozenset(
    ("read-path", "write-path", "delete-path", "write-history", "delete-history")
)
"""Roles whose values are paths of files, directories or repositories."""

WRITING_ROLES: Final[frozenset[str]] = PATH_ROLES - {"read-path"}
"""Path roles that write. A server whose tools have none of these needs read access only."""

REPOSITORY_ROLES: Final[frozenset[str]] = PATH_ROLES - {"write-path"}
"""Path roles that name an existing repository on a git server; ``write-path`` names one to create."""

URL_ROLES: Final[frozenset[str]] = frozenset(("fetch-url", "git-remote-url"))
"""Roles whose values are addresses. Rules compare their hosts."""

IDENTIFIER_ROLES: Final[frozenset[str]] = frozenset(("github-owner", "github-repo", "proxy-domain", "app"))
"""Roles whose values are names. Rules compare them with lists."""

SENSE_ROLES: Final[frozenset[str]] = frozenset(("screen", "audio-source"))
"""Descriptive roles of what is looked at or listened to. A tool with one of them changes nothing."""

HAND_ROLES: Final[frozenset[str]] = frozenset(("app", "ui-text"))
"""Roles of the application that a tool operates, and of what it types, or what names the element that it operates."""

RESOURCE_ROLES: Final[frozenset[str]] = PATH_ROLES | URL_ROLES | IDENTIFIER_ROLES
"""Roles that are judged, each separately. The other roles are descriptive, unless a list condition names them."""

DOMAIN_ROLES: Final[frozenset[str]] = URL_ROLES | {"proxy-domain"}
"""Roles that a ``domains`` condition can name."""

LOCAL_ROLES: Final[frozenset[str]] = (
    PATH_ROLES | SENSE_ROLES | HAND_ROLES | {"branch-name", "commit-message", PARTY_ROLE, METHOD_ROLE, "none"}
)
"""Roles whose values do not leave this machine by the call itself."""

NAMED_ROLES: Final[frozenset[str]] = frozenset(("branch-name", "email-address", "share-permission"))
"""Descriptive roles whose values the user has to name before a call is approved without a person."""

FREE_TEXT_ROLES: Final[frozenset[str]] = frozenset(("commit-message", "email-body"))
"""Roles whose values are prose, which programs do not read as options."""
