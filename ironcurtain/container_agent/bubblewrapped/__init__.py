"""Agents in a sandbox of bubblewrap, with the programs of this machine: no Docker is needed."""
