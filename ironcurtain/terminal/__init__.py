"""Terminals: the program's screen, kept and shown to any number of viewers; keys, recordings, local terminals."""
