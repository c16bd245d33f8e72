"""The shell fish with a home that is new."""

from __future__ import annotations

NEW_HOME = {"FISH_UNIT_TESTS_RUNNING": "1"}
"""
Its environment. Without this, an interactive fish that finds no completions in its home reads all manual pages of the
machine: in the background, for minutes, and beyond the end of a test.
"""
