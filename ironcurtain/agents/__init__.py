"""
The agent programs that IronCurtain can run in a container: one module per agent, behind one interface.

An adapter knows its agent's configuration, command line and output format. It starts nothing and reads no files: it
returns texts, and takes bytes.
"""
