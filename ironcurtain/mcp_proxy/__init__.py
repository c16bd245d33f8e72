"""The MCP proxy: agents' tool calls are judged, recorded and passed on to MCP servers behind it."""
