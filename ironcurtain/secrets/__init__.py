"""Secrets: where they come from, a type that hides them, and the redactor."""
