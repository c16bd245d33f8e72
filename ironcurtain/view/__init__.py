"""Escalations and arguments in lines for people, the same for every front end."""
