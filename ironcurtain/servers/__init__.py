"""MCP servers that come with IronCurtain. Each is a process of its own, started like any other backend."""
