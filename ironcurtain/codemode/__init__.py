"""
Programs written by the model, run in an interpreter that has nothing but the session's tools.

The language is Python as pydantic-monty understands it. A tool call stops the program until the policy, and where need
be a person, has answered; to the program it looks like an ordinary function that returns.
"""
