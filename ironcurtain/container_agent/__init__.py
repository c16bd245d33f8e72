"""Sessions with an agent program in a container without a network: one run of the program for each message."""
