"""
Run programs of the model in an interpreter that can use nothing but the session's tools.

The language is pydantic-monty's subset of Python. A tool is an ordinary function; a call of it blocks the program until
the policy, and if necessary a person, has decided.
"""
