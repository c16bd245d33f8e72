"""HTTP as several packages need it: trust, connections, and event streams."""
