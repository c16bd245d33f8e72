"""Files that several processes use: atomic writes, locks, removal."""
