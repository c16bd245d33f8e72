"""What agents of shells did: spans, and where they go."""
