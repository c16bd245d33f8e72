"""Pipes that end with their test."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase


def pair(case: SynchronousTestCase) -> tuple[int, int]:
    """:returns: both ends of a pipe."""
    ends = os.pipe()
    for end in ends:
        case.addCleanup(os.close, end)
    return ends
