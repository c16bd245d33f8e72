"""Test a sandbox or container by running a hostile program in it."""
