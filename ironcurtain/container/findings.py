"""What was looked at and whether it is as ordered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """
    One thing that was looked at.

    :param what: in a word or two, the same for every container.
    :param problem: what is wrong, as a sentence for people; empty if nothing is.
    """

    what: str
    problem: str = ""


def judged(what: str, problems: Iterable[str]) -> Finding:
    """:returns: one finding for several problems of the same kind."""
    return Finding(what, "; ".join(problems))
