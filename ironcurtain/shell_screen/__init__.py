"""The agent mode of a shell: what a person sees and types while the agent works."""
