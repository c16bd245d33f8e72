"""Watchers: start agents when a file changes, a time comes, or something is seen, heard or read, under the policy."""
