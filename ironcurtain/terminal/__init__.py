"""Terminals: a program's screen for any number of viewers, keys, recordings, local terminals."""
