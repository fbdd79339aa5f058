"""Whether a catalog is so small that tool search costs more than it saves."""

from collections.abc import Mapping, Sequence
from typing import Any

from aggregator.exposure import tokens_of

Document = Mapping[str, Any]


def advise(
    listed: Sequence[Document], tools: Sequence[Document], servers: Sequence[Document]
) -> str:
    """Say what listing every tool would save, if it would; nothing while some may still come."""
    visible = {tool["name"] for tool in listed}
    deferred = [tool["tokens"] for tool in tools if tool["name"] not in visible]
    ours = visible - {tool["name"] for tool in tools}
    cost = sum(tokens_of(tool) for tool in listed if tool["name"] in ours)
    saved = cost - sum(deferred)
    settled = all(server["state"] in ("ready", "idle") for server in servers)
    if not (settled and deferred and saved > 0):
        return ""
    noun = "tool is" if len(deferred) == 1 else "tools are"
    return (
        f"Tool search costs more than it saves here: the {len(deferred)} deferred {noun} about "
        f"{sum(deferred):,} tokens, the search itself {cost:,}; `toolSearch: auto` in "
        f"servers.yaml would save {saved:,} on every turn"
    )
