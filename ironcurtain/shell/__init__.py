"""The user's own shell in a terminal, with an agent that proposes commands and runs those that are approved."""
