"""Loops: a command, or an agent in a container, that is run again and again until it says that all is done."""
