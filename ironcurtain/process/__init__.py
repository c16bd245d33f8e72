"""Processes: accounts, identities, and confined workers for untrusted input."""
