"""Containers without a network: specification, the Docker Engine's client, programs run inside, probe, sweeping."""
