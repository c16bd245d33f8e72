"""The escalation console: a full-screen view of sessions and of what waits for a person, on any terminal."""
