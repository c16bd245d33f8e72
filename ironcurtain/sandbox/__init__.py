"""Run untrusted programs with access to specified files, network and system calls only."""
