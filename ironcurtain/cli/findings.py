"""What checks of an installation find."""

from __future__ import annotations

import msgspec

OK, HINT, WRONG = "ok", "hint", "wrong"


class Finding(msgspec.Struct, frozen=True):
    """
    The result of one check.

    :param state: ``ok``, ``hint`` (works, but could be better), or ``wrong``.
    :param mend: what to do; empty if nothing.
    """

    what: str
    state: str
    detail: str
    mend: str = ""
