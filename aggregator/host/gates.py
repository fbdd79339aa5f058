"""How found tools can be carried to a model: what its vendor, its name and the way to it allow.

Vendors add to this monthly: each table says when it was read.
"""

import re
from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

Carry = Literal["reference", "inline", "plain", "all"]
"""How found tools reach a model.

`reference`: the answer to a search refers to definitions that the API holds back until then.
`inline`: the answer to a search carries the definitions.
`plain`: the next request defines them among its tools, which costs the prompt's cache.
`all`: every request defines everything, and nothing is searched.
"""

UNABLE = ("haiku",)
"""Parts of the names of models that cannot use references (read on 2026-11-01)."""
MESSAGES_HOSTS = ("api.anthropic.com",)
RESPONSES_HOSTS = ("api.openai.com", "*.openai.azure.com")
"""Where it is known what the API accepts; `*.` stands for any names in front."""
INLINE_BETAS = ("mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15")
"""What a request must ask for to define tools in the middle of a conversation."""

SEARCHING = (5, 4)
"""The first version of `gpt` models that search; the smallest of each do not (2026-11-01)."""
_VERSION = re.compile(r"(?:^|[/:])gpt-(\d+)(?:\.(\d+))?")


def carry_for_messages(
    model: str,
    base_url: str | None = None,
    *,
    unable: Sequence[str] = UNABLE,
    hosts: Sequence[str] = MESSAGES_HOSTS,
) -> Carry:
    """Choose the way for the Anthropic Messages API; of a gateway nobody knows, nothing is hoped.

    Args:
        model: As the request names it.
        base_url: Where requests go to; `None` is the vendor's own address.
        unable: Parts of the names of models that cannot use references.
        hosts: Where they are known to be passed on.
    """
    if not _leads_to(base_url, hosts):
        return "all"
    return "plain" if any(part in model.lower() for part in unable) else "reference"


def carry_for_responses(
    model: str,
    base_url: str | None = None,
    *,
    hosts: Sequence[str] = RESPONSES_HOSTS,
) -> Carry:
    """Choose the way for the OpenAI Responses API; of a model nobody knows, nothing is hoped."""
    named = _VERSION.search(model.lower())
    if named is None or not _leads_to(base_url, hosts):
        return "all"
    is_new = (int(named[1]), int(named[2] or 0)) >= SEARCHING
    return "inline" if is_new and "nano" not in model.lower() else "plain"


def _leads_to(base_url: str | None, hosts: Sequence[str]) -> bool:
    """Tell whether requests go to one of some hosts."""
    if not base_url:
        return True
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    return any(host == each or (each[:2] == "*." and host.endswith(each[1:])) for each in hosts)
