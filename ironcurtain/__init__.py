"""IronCurtain: run AI agents that you do not have to trust."""

__version__ = "0.2.0"
