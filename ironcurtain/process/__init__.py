"""Processes of ours and of the system: as whom they run, which they are, and those that read untrusted input."""
