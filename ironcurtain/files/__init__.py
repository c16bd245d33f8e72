"""Files that other processes write at the same time: atomic publication, locks, removal."""
