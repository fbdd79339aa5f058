"""Which server a text is addressed to: the one whose name or prefix it begins with."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from aggregator.names.forms import BOUNDARY, CLIENT_MARK, ServerName, folded, grouped

_RUN = re.compile(r"([\W_]{2})[\W_]+")
"""Signs in a row, of which two say as much as all of them."""


class Leads:
    """What a text begins with if it is addressed to one of the servers, ready or not."""

    def __init__(self, servers: Mapping[ServerName, str] = MappingProxyType({})) -> None:
        self._servers = servers
        self._written = _led(servers, str.casefold)
        self._folded = _led(servers, folded)
        self._reach = 4 * max(map(len, self._folded), default=0) + 4
        self._longest = max((lead.count("_") + 1 for lead in self._folded), default=0)

    def addressed(self, text: str) -> list[tuple[ServerName, ...]]:
        """Return the servers that a text names before a tool; those of the same name together.

        Only behind the mark of a client there may be several, since the first may be what it
        calls us.
        """
        found = [named] if (named := self._before_sign(text) or self._before_any(text)) else []
        is_marked = text.casefold().startswith(CLIENT_MARK)
        for boundary in BOUNDARY.finditer(text):
            if found and not is_marked:
                break
            rest = text[boundary.start() :]
            named = self._before_sign(rest)
            if is_marked and not found:
                named = named or self._before_any(rest)
            found += [named] if named else []
        return found

    def claims(self, name: str) -> ServerName | None:
        """Return the server whose tool a name pretends to be, as it is or as clients show it."""
        if not self._servers:
            return None
        if named := self._before_sign(name):
            return named[0]
        is_marked = name.casefold().startswith(CLIENT_MARK)
        name = _RUN.sub(r"\1", name)
        rests = (
            name[at.start() : at.start() + self._reach if is_marked else None]
            for at in BOUNDARY.finditer(name)
        )
        claimed = map(self._before_any if is_marked else self._before_sign, rests)
        return next((named[0] for named in claimed if named), None)

    def _before_sign(self, text: str) -> tuple[ServerName, ...]:
        """Return the servers named before the sign that separates a prefix from a tool."""
        head, sign, _ = text.partition("__")
        named = self._written.get(head.casefold(), ()) if sign else ()
        return tuple(each for each in named if head in self._leads(each)) or named

    def _before_any(self, text: str) -> tuple[ServerName, ...]:
        """Return the servers named before any sign, the longest name first."""
        parts = folded(text).split("_")
        lengths = range(min(len(parts) - 1, self._longest), 0, -1)
        heads = ("_".join(parts[:length]) for length in lengths)
        named = next((self._folded[head] for head in heads if head in self._folded), ())
        return tuple(each for each in named if text.startswith(self._leads(each))) or named

    def _leads(self, server: ServerName) -> tuple[str, ...]:
        return tuple(lead for lead in (server, self._servers[server]) if lead)


def _led(
    servers: Mapping[ServerName, str], form: Callable[[str], str]
) -> Mapping[str, tuple[ServerName, ...]]:
    """Return the servers by their names and prefixes in some form."""
    leads = ((form(lead), name) for name, prefix in servers.items() for lead in (name, prefix))
    return grouped((lead, server) for lead, server in leads if lead)


NO_LEADS = Leads()
