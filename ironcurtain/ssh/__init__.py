"""The SSH service: the console, terminals of sessions, and a few commands, for the holders of listed keys."""
