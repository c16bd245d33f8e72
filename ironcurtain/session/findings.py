"""What a session's comparison of its workspace found, as commands read it."""

from __future__ import annotations

import msgspec

from ironcurtain.project.planted import SuspectFile


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """
    The findings of the last comparison, as stored in ``findings.json``.

    :param complete: whether the comparison finished and left nothing out.
    """

    version: int = 1
    complete: bool
    files: list[SuspectFile]
