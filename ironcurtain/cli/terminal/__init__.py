"""The terminal front end of ``ironcurtain start``: one message, or a conversation."""

from ironcurtain.cli.terminal.frontend import FrontEnd, Left

__all__ = ["FrontEnd", "Left"]
