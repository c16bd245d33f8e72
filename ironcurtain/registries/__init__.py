"""Package registries, opened read-only: what installing needs, old enough, of allowed packages, and recorded."""
