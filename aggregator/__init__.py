"""One MCP server that stands in front of all the others."""
