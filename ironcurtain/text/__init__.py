"""Text for people's terminals: escaping and width."""
