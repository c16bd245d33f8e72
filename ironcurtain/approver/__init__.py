"""Approve what the user's own words plainly ask for; everything else waits for a person."""
