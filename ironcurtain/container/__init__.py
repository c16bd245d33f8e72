"""Containers without a network: specification, client of the Docker Engine, running programs, probe, cleanup."""
