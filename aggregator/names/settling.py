"""The names that clients see, settled so that no two are the same."""

import re
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from itertools import count
from typing import NamedTuple

from aggregator.basics.effort import Turn, finished
from aggregator.names.forms import (
    PUNCTUATION,
    ServerName,
    ToolName,
    extent,
    folded,
    unaccented,
    worded,
)
from aggregator.names.leads import NO_LEADS, Leads

MAX_NAME = 45
"""Characters a name may have."""
MAX_PREFIX = 20
"""Characters of it that may come from the server."""


class MetaTools(NamedTuple):
    """What our own tools are called."""

    search: str = "ToolSearch"
    call: str = "CallTool"
    call_read_only: str = "CallReadOnlyTool"


RESERVED = MetaTools()
"""The names of our own tools, unless the configuration gives them others."""

_DIGEST = 6
"""Hexadecimal digits that tell apart names which would otherwise be the same."""

NAMING = 2
"""Steps that it takes to name a tool."""
HASHING = 4
"""Steps that it takes to tell one apart by a hash."""
NAMING_ALONE = 100
"""Steps that it takes if there is no prefix, and a name could be another's."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_]+")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")
_OWN_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{MAX_NAME - 1}}}", re.ASCII)
_SPLIT_MARK = re.compile(r"_mcp(?=_)", re.IGNORECASE)

_LOOKALIKES = str.maketrans(
    "015i|"
    "\u0442\u043e\u04cf\u0456\u0455\u0435\u0430\u0433\u0441\u04bb\u0501\u043f\u0443"
    "\u03c4\u03bf\u03b9\u03b5\u03b1\u03b7",
    "olsll" + "tollsearchdny" + "tolean",
)
"""Digits, Cyrillic and Greek letters that look like the letters of our own tools' names."""


def prefixes(servers: Iterable[str], taken: Collection[str] = ()) -> dict[ServerName, str]:
    """Return what the names of each server's tools begin with, different for each."""
    wanted = {server: _prefix(server) for server in servers}
    settled = finished(_told_apart(wanted, "server", MAX_PREFIX, taken=taken))
    return {ServerName(server): settled[server] for server in wanted}


def qualify(
    prefix: str,
    tools: Iterable[str],
    reserved: Collection[str] = RESERVED,
    others: Leads = NO_LEADS,
) -> dict[str, ToolName]:
    """Return the name of each of a server's tools.

    Without a prefix, a tool that imitates one of ours or of the others has no name and is left out.
    """
    return finished(settle(prefix, tools, reserved, others))


def settle(
    prefix: str, tools: Iterable[str], reserved: Collection[str], others: Leads
) -> Generator[None, None, dict[str, ToolName]]:
    """Return the same; yield where a turn is over."""
    lead, turn = f"{prefix}__" if prefix else "", Turn()
    ours = set(map(_skeleton, reserved))
    wanted: dict[str, str] = {}
    for tool in tools:
        text = _tool(tool, lead)
        if lead or not _is_imitation(tool, text, ours, others):
            wanted[tool] = text
        if turn.is_over(NAMING if lead else NAMING_ALONE, cleaned=extent(tool)):
            yield
    yield
    settled = yield from _told_apart(wanted, "tool", MAX_NAME, lead=lead)
    return {tool: ToolName(settled[tool]) for tool in wanted}


def _is_imitation(tool: str, text: str, ours: Collection[str], others: Leads) -> bool:
    """Whether a name without a prefix could be taken for one of ours or of the others."""
    return _skeleton(tool) in ours or _skeleton(text) in ours or others.claims(text) is not None


def is_own_name(name: str) -> bool:
    """Say whether one of our own tools may have a name: every client takes it, no server has it."""
    return bool(_OWN_NAME.fullmatch(name)) and "__" not in name and not _SPLIT_MARK.search(name)


def look_alike(one: str, other: str) -> bool:
    """Say whether two names can be taken for one another."""
    return _skeleton(one) == _skeleton(other)


def plain_name(tool: str) -> str:
    """Return a tool's own name in the characters every client takes; empty if none is left."""
    return _tool(tool, "")


class Spellings:
    """How a person may write a tool."""

    def __init__(self, tool: str, prefix: str) -> None:
        self.own = tool
        """As its server does."""
        self._lead = f"{prefix}__" if prefix else ""
        self._text = _tool(tool, self._lead)
        self.plain = tool if self._text == tool else plain_name(tool)
        """In the characters every client takes."""

    @property
    def whole(self) -> str:
        """As clients see it."""
        return self._lead + self._text

    @property
    def hashed(self) -> str:
        """As clients see it if that is too long, or another tool has it."""
        return _hashed(self.own, _stem(self._text, "tool", MAX_NAME - _DIGEST - 1, self._lead))

    @property
    def bare_hashed(self) -> str:
        """The same without its prefix."""
        return self.hashed.removeprefix(self._lead)

    @cached_property
    def folded(self) -> frozenset[str]:
        """Without case and signs, in each of these."""
        return frozenset(map(folded, {self.own, self.plain, self._text}))

    @cached_property
    def worded(self) -> frozenset[str]:
        """The same, and with a sign wherever a word begins."""
        if self.own.islower():
            return self.folded
        words = map(worded, {self.own, self.plain, self._text})
        return self.folded.union(map(folded, words))


def spellings(tool: str, prefix: str) -> Spellings:
    """Return how a person may write a tool."""
    return Spellings(tool, prefix)


def plain_server(name: str) -> str:
    """Return the name of a server without what people forget of it: case and signs."""
    return PUNCTUATION.sub("", name.casefold())


def _prefix(server: str) -> str:
    parts = _NOT_ALPHANUMERIC.sub("_", unaccented(server)).strip("_").split("_")
    return "_".join(part for at, part in enumerate(parts) if at == 0 or part.lower() != "mcp")


def _tool(tool: str, lead: str) -> str:
    """Return what of a tool's own name can follow a lead."""
    text = unaccented(tool)
    if _FOREIGN.search(text):
        text = _FOREIGN.sub("_", text).strip("_")
    text = _SPLIT_MARK.sub("", lead + text)[len(lead) :]
    return text if text.strip("_") else ""


def _told_apart(
    wanted: Mapping[str, str],
    stand_in: str,
    limit: int,
    *,
    lead: str = "",
    taken: Collection[str] = (),
) -> Generator[None, None, dict[str, str]]:
    """Return a name for each original: the wanted text where it fits and is alone, else a hash.

    An original that needs no change always keeps its text.
    """
    uses = Counter(wanted.values())
    fitting = {
        original: lead + text
        for original, text in wanted.items()
        if text and len(lead + text) <= limit and lead + text not in taken
    }
    settled = {original: name for original, name in fitting.items() if name == lead + original}
    used = {*taken, *settled.values()}
    settled |= {
        original: name
        for original, name in fitting.items()
        if uses[wanted[original]] == 1 and name not in used
    }
    used.update(settled.values())
    turn = Turn()
    for original in sorted(wanted.keys() - settled.keys()):
        stem = _stem(wanted[original], stand_in, limit - _DIGEST - 1, lead)
        hashed = (_hashed(original, stem, attempt) for attempt in count())
        settled[original] = next(name for name in hashed if name not in used)
        used.add(settled[original])
        if turn.is_over(HASHING, cleaned=len(original)):
            yield
    return settled


def _stem(text: str, stand_in: str, limit: int, lead: str) -> str:
    """Return the beginning of a name to put a hash behind."""
    text = text[: limit - len(lead)].rstrip("_")
    if f"{lead}{text}".lower().endswith("_mcp"):
        text = text[:-3].rstrip("_")
    return lead + (text or stand_in)


def _hashed(original: str, stem: str, attempt: int = 0) -> str:
    """Return the beginning of a name with what tells its original apart."""
    salted = f"{original}\0{attempt}" if attempt else original
    digest = sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{stem}_{digest[:_DIGEST]}"


def _skeleton(text: str) -> str:
    """Return what a name looks like, so that look-alikes are equal."""
    return PUNCTUATION.sub("", unaccented(text).casefold().translate(_LOOKALIKES))
