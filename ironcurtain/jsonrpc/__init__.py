"""JSON-RPC 2.0 over newline-delimited streams, as the Model Context Protocol uses it."""
