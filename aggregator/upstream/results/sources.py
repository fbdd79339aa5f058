"""Whether what a kept result came from is still there for whoever wants to read it again."""

from aggregator.fleet.now import Now
from aggregator.names import ServerName, ToolName
from aggregator.toolsearch.offers import split
from aggregator.upstream.results.kept import Kept


def is_shown(kept: Kept, now: Now) -> bool:
    """Whether a client that sees this much sees the tool, prompt, skill or resource of a result.

    That of a server which is away for now is still its own. What is ours may tell of anything
    that was there, and be asked for anew.
    """
    if not kept.server:
        return kept.config is now.config
    if kept.server not in now.config.servers:
        return False
    if (meant := split(kept.tool)) is None:
        return has_tool(ToolName(kept.tool), kept.server, now)
    kind, name = meant
    if kind == "prompt":
        entry = now.routes.prompt(name)
        return entry is not None and entry.server == kept.server
    return kept.server not in now.routes.closed


def has_tool(name: ToolName, server: ServerName, now: Now) -> bool:
    """Whether a client that sees this much sees a tool of a server, which may be away for now."""
    entry = now.catalog.entries.get(name)
    if entry is not None:
        return entry.server == server
    gone = now.routes.gone.get(server)
    return gone is not None and any(each.name == name for each in gone.entries)
