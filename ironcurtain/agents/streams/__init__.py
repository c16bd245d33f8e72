"""
What agents' programs say while they work, and what they are told: one module per protocol, none of which does I/O.

Everything read here comes from untrusted programs: members can be missing or have another type, lines can have several
megabytes. Nothing here raises because of it.
"""
