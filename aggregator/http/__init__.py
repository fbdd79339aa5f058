"""MCP over HTTP: servers that are reached by their URL, and clients that reach us by ours."""
