"""Render escalations and arguments as lines of text, for all front ends."""
