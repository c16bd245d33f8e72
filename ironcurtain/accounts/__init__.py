"""Accounts at model providers: where their tokens come from, and which account pays for an agent."""
