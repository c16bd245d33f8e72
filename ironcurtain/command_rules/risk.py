"""Risk classes: how severe the effects of a command line can be."""

from __future__ import annotations

from enum import StrEnum


class Risk(StrEnum):
    """What a command can do, as far as its text shows; from the least to the most severe."""

    READ = "read"
    WRITE_INSIDE = "write-inside"
    """It writes below the directory that the shell is in."""
    WRITE_OUTSIDE = "write-outside"
    NETWORK = "network"
    PRIVILEGE = "privilege"
    DESTRUCTIVE = "destructive"
    UNKNOWN = "unknown"
    """Its text does not show it: variables as commands, syntax that was not understood."""


SEVERITY = {risk: severity for severity, risk in enumerate(Risk)}
"""The most severe risk of any part of a line is the risk of the line."""
