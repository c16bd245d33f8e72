"""HTTP code that several packages use: trust, connections, and event streams."""
