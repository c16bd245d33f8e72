"""
What the commands of a line do: the files and hosts that they use, how severe that can be, and which patterns of a
policy they match.
"""

from ironcurtain.command_rules.classification import risk_of
from ironcurtain.command_rules.patterns import Pattern, PatternError, parse_pattern
from ironcurtain.command_rules.places import Places
from ironcurtain.command_rules.risk import Risk

__all__ = ["Pattern", "PatternError", "Places", "Risk", "parse_pattern", "risk_of"]
