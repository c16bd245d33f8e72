"""Sessions: a conversation with an agent and everything that belongs to it, whatever kind of agent it is."""
