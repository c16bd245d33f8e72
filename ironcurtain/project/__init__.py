"""A workspace before and after an agent's work: clone, manifest, diff, export."""
