"""Loops: run a command, or an agent in a container, repeatedly until its task is done."""
