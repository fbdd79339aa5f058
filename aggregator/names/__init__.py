"""The names clients see for the tools of each server, and the way back.

A name is `<prefix>__<tool>`: 45 characters at most, since clients add prefixes of their own and
cut or drop what becomes too long, and without `_mcp_` inside, since one client splits there.
A name depends only on the names of its server's tools, never on the order they are listed in.
"""

from aggregator.names.forms import CLIENT_MARK, ServerName, ToolName, extent, folded, grouped
from aggregator.names.leads import Leads
from aggregator.names.lookup import Ambiguous, Forms, Lookup, Register
from aggregator.names.settling import (
    MAX_NAME,
    MAX_PREFIX,
    NAMING_ALONE,
    RESERVED,
    MetaTools,
    Spellings,
    is_own_name,
    look_alike,
    plain_name,
    plain_server,
    prefixes,
    qualify,
    settle,
    spellings,
)

__all__ = [
    "CLIENT_MARK",
    "MAX_NAME",
    "MAX_PREFIX",
    "NAMING_ALONE",
    "RESERVED",
    "Ambiguous",
    "Forms",
    "Leads",
    "Lookup",
    "MetaTools",
    "Register",
    "ServerName",
    "Spellings",
    "ToolName",
    "extent",
    "folded",
    "grouped",
    "is_own_name",
    "look_alike",
    "plain_name",
    "plain_server",
    "prefixes",
    "qualify",
    "settle",
    "spellings",
]
