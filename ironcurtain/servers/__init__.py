"""IronCurtain's own MCP servers. Each is a separate process, started like any other backend."""
