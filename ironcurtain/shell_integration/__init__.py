"""Shells that say where their prompts and commands begin and end, and which instructions were typed."""
