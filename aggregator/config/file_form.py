"""The whole of `servers.yaml` as one form, for whoever describes it.

It is never filled in: each server is, with variables of its own.
"""

from typing import Any

from pydantic import Field

from aggregator.config.form import ServerForm, SettingsForm


class FileForm(SettingsForm):
    """The whole file: the servers behind the aggregator, and how it treats them and its clients."""

    servers: dict[str, ServerForm] = Field(
        {}, description="The servers, by the names their tools are prefixed with."
    )
    mcp_servers: dict[str, dict[str, Any]] = Field(
        {}, description="Servers in the form that clients' own configuration files use."
    )
