"""Sessions: a conversation with an agent of any kind, with all its parts."""
