"""What checks of an installation find."""

from __future__ import annotations

from dataclasses import dataclass

OK, HINT, WRONG = "ok", "hint", "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """
    The result of one check.

    :param state: ``ok``, ``hint`` (works, but could be better), or ``wrong``.
    :param mend: what to do; empty if nothing.
    """

    what: str
    state: str
    detail: str
    mend: str = ""
