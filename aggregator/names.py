"""The names clients see for the tools of each server, and the way back."""

from typing import NewType

ServerName = NewType("ServerName", str)
"""A key under `servers:` in servers.yaml."""

ToolName = NewType("ToolName", str)
"""A tool's name as clients see it."""
