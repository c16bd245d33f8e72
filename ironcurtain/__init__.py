"""IronCurtain: run AI agents nobody trusts, and keep the last word."""

__version__ = "0.2.0"
