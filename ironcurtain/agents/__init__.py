"""
The agent programs that IronCurtain can run in a container: one module an agent, behind one interface.

An adapter knows what its agent is told at the start, what it is called with, and how to read what it prints. It starts
nothing and reads no file: it gives texts, and takes bytes.
"""
