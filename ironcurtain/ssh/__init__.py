"""The SSH service: the console, terminals of sessions, and a few commands, for holders of listed keys."""
