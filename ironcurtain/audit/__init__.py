"""The audit log: an append-only chain of records, one file per session, written before the effects it describes."""
