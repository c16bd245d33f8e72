"""The terminal front end of ``ironcurtain start``: one message, or a conversation."""
