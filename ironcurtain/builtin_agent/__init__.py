"""The built-in agent: a model that writes code, and an interpreter that runs it with the session's tools."""
