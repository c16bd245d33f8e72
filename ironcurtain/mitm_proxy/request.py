"""The head of one HTTP request, as it was parsed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RequestHead:
    """
    What stands before a request's body.

    :ivar method: as it was written; methods are case-sensitive (RFC 9110 section 9.1).
    :ivar target: the whole request target, as it was written.
    :ivar path: the target up to the first question mark.
    :ivar query: what follows that question mark; empty if there is none.
    :ivar headers: names in lower case and values (latin-1), in the order in which they came.
    """

    method: str
    target: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
