"""What comes into a workspace before an agent starts, and what the agent made of it: clone, manifest, diff, export."""
