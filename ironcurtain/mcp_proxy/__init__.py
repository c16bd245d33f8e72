"""The MCP proxy: judge and record agents' tool calls, and forward them to MCP servers."""
