"""Secrets: a type that hides them, and the redactor."""
