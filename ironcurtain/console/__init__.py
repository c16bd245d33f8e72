"""The escalation console: a full-screen view of sessions and pending escalations, on any terminal."""
