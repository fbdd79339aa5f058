"""The names clients see for the tools of each server, and the way back.

A name is `<prefix>__<tool>`: 45 characters at most, since clients add prefixes of their own and
cut or drop what becomes too long, and without `_mcp_` inside, since one client splits there.
A name depends only on the names of its server's tools, never on the order they are listed in.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import count
from typing import NewType

ServerName = NewType("ServerName", str)
"""A key under `servers:` in servers.yaml."""

ToolName = NewType("ToolName", str)
"""A tool's name as clients see it."""

MAX_NAME = 45
"""Characters a name may have."""
MAX_PREFIX = 20
"""Characters of it that may come from the server."""
RESERVED = ("ToolSearch", "CallTool", "CallReadOnlyTool")
"""The names of our own tools."""

_DIGEST = 6
"""Hexadecimal digits that tell apart names which would otherwise be the same."""
_MAX_QUESTION = 300
"""Characters a text may have and still be meant as a name."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_]+")
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]+")
_SPLIT_MARK = re.compile(r"_mcp(?=_)", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[\W_]+")
_BOUNDARY = re.compile(r"(?<=[-_./:])(?=[^-_./:])")

_LOOKALIKES = str.maketrans(
    "01i|"
    "\u0442\u043e\u04cf\u0456\u0455\u0435\u0430\u0433\u0441\u04bb\u0501\u043f\u0443"
    "\u03c4\u03bf\u03b9\u03b5\u03b1\u03b7",
    "olll" + "tollsearchdny" + "tolean",
)
"""Digits, Cyrillic and Greek letters that look like the letters of our own tools' names."""


def prefixes(servers: Iterable[str], taken: Collection[str] = ()) -> dict[ServerName, str]:
    """Return what the names of each server's tools begin with, different for each."""
    wanted = {server: _prefix(server) for server in servers}
    settled = _told_apart(wanted, "server", MAX_PREFIX, taken=taken)
    return {ServerName(server): settled[server] for server in wanted}


def qualify(prefix: str, tools: Iterable[str]) -> dict[str, ToolName]:
    """Return the name of each of a server's tools.

    Without a prefix, a tool that imitates one of ours has no name and is left out.
    """
    lead = f"{prefix}__" if prefix else ""
    wanted = {tool: _tool(tool, lead) for tool in tools}
    if not lead:
        wanted = {
            tool: text
            for tool, text in wanted.items()
            if _skeleton(tool) not in _RESERVED and _skeleton(text) not in _RESERVED
        }
    settled = _told_apart(wanted, "tool", MAX_NAME, lead=lead)
    return {tool: ToolName(settled[tool]) for tool in wanted}


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several tools that a text may mean, in configuration order."""

    candidates: tuple[ToolName, ...]


@dataclass(frozen=True)
class Register:
    """The tools of one server, by every way in which their names may be written."""

    server: ServerName
    tools: tuple[tuple[ToolName, str], ...]
    """Each tool's name, and its name on the server."""

    @cached_property
    def own(self) -> Mapping[str, str]:
        """The name that each tool has on the server."""
        return dict(self.tools)

    @cached_property
    def own_names(self) -> Mapping[str, tuple[ToolName, ...]]:
        """The tools of each name on the server."""
        return _grouped((own, name) for name, own in self.tools)

    @cached_property
    def caseless(self) -> Mapping[str, tuple[ToolName, ...]]:
        """The tools of each name, if case makes no difference."""
        return _grouped((name.casefold(), name) for name, _ in self.tools)

    @cached_property
    def bare(self) -> Mapping[str, tuple[ToolName, ...]]:
        """The tools of each name on the server, if neither case nor signs make a difference."""
        return _grouped((_folded(own), name) for name, own in self.tools)

    @cached_property
    def qualified(self) -> Mapping[str, tuple[ToolName, ...]]:
        """The same for names with their server before them."""
        spellings = (
            (_folded(spelling), name)
            for name, own in self.tools
            for spelling in {name, f"{self.server}__{own}", f"{_lead(name)}{own}"}
        )
        return _grouped(spellings)

    @cached_property
    def leads(self) -> frozenset[str]:
        """What the server may be called before the name of a tool."""
        return frozenset(map(_folded, {self.server, *(_lead(name) for name, _ in self.tools)}))


@dataclass(frozen=True)
class Lookup:
    """Finds the tool a model means, however it writes the name."""

    registers: tuple[Register, ...] = ()
    """Those of all servers, in configuration order."""

    @classmethod
    def of(cls, triples: Iterable[tuple[ToolName, ServerName, str]]) -> "Lookup":
        """Return the lookup of some tools: the name of each, its server, its name there."""
        found: dict[ServerName, list[tuple[ToolName, str]]] = {}
        for name, server, own in triples:
            found.setdefault(server, []).append((name, own))
        return cls(tuple(Register(server, tuple(tools)) for server, tools in found.items()))

    def find(self, text: str) -> ToolName | Ambiguous | None:
        """Return the tool that a text names, the closest spelling first."""
        text = text.strip()
        if len(text) > _MAX_QUESTION:
            return None
        for found in self._by_closeness(text):
            if candidates := tuple(dict.fromkeys(found)):
                return self._narrowed(candidates, text)
        return None

    def namesakes(self, own: str) -> tuple[ToolName, ...]:
        """Return the tools of all servers that have this name there."""
        return tuple(name for each in self.registers for name in each.own_names.get(own, ()))

    def _by_closeness(self, text: str) -> Iterator[list[ToolName]]:
        yield self._named(text)
        yield list(self.namesakes(text))
        yield self._caseless(text)
        if folded := _folded(text):
            yield self._qualified(folded)
            yield [name for each in self.registers for name in each.bare.get(folded, ())]
            yield from self._behind_client_prefix(text)

    def _named(self, text: str) -> list[ToolName]:
        return [ToolName(text)] if any(text in each.own for each in self.registers) else []

    def _caseless(self, text: str) -> list[ToolName]:
        caseless = text.casefold()
        return [name for each in self.registers for name in each.caseless.get(caseless, ())]

    def _qualified(self, folded: str) -> list[ToolName]:
        return [name for each in self.registers for name in each.qualified.get(folded, ())]

    def _behind_client_prefix(self, text: str) -> Iterator[list[ToolName]]:
        """Leave out more and more of what a client may have put before a name."""
        marked = text.casefold().startswith("mcp")
        for boundary in _BOUNDARY.finditer(text):
            lead, rest = text[: boundary.start()], text[boundary.start() :]
            if "__" in rest:
                yield self._named(rest) or self._caseless(rest)
            if marked:
                yield self._not_of_another(lead, self._qualified(_folded(rest)))

    def _not_of_another(self, lead: str, found: list[ToolName]) -> list[ToolName]:
        """Drop tools when the text before them names a server, and not theirs."""
        if not found or (words := _folded(lead)) == "mcp":
            return found
        parts = words.split("_")
        tails = {"_".join(parts[at:]) for at in range(len(parts))}
        named = [each for each in self.registers if not tails.isdisjoint(each.leads)]
        return [name for name in found if not named or any(name in each.own for each in named)]

    def _narrowed(self, candidates: tuple[ToolName, ...], text: str) -> ToolName | Ambiguous:
        """Prefer the candidates whose own name, then whose server, is spelled exactly so."""
        homes = {name: self._home(name) for name in candidates}
        spelled = tuple(name for name in candidates if text.endswith(homes[name].own[name]))
        candidates = spelled or candidates
        spelled = tuple(name for name in candidates if homes[name].server in text)
        candidates = spelled or candidates
        return candidates[0] if len(candidates) == 1 else Ambiguous(candidates)

    def _home(self, name: ToolName) -> Register:
        return next(each for each in self.registers if name in each.own)


def plain_server(name: str) -> str:
    """Return the name of a server without what people forget of it: case and signs."""
    return "".join(each for each in name.casefold() if each.isalnum())


def _prefix(server: str) -> str:
    parts = _NOT_ALPHANUMERIC.sub("_", _unaccented(server)).strip("_").split("_")
    return "_".join(part for at, part in enumerate(parts) if at == 0 or part.lower() != "mcp")


def _tool(tool: str, lead: str) -> str:
    """Return a tool's own name in the characters every client takes; empty if none is left."""
    text = _unaccented(tool)
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
) -> dict[str, str]:
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
    for original in sorted(wanted.keys() - settled.keys()):
        stem = _stem(wanted[original], stand_in, limit - _DIGEST - 1, lead)
        hashed = (f"{stem}_{_digest(original, attempt)}" for attempt in count())
        settled[original] = next(name for name in hashed if name not in used)
        used.add(settled[original])
    return settled


def _stem(text: str, stand_in: str, limit: int, lead: str) -> str:
    """Return the beginning of a name to put a hash behind."""
    text = text[: limit - len(lead)].rstrip("_")
    if f"{lead}{text}".lower().endswith("_mcp"):
        text = text[:-3].rstrip("_")
    return lead + (text or stand_in)


def _digest(original: str, attempt: int) -> str:
    salted = f"{original}\0{attempt}" if attempt else original
    return sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def _unaccented(text: str) -> str:
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part))


def _skeleton(text: str) -> str:
    """Return what a name looks like, so that look-alikes are equal."""
    return _PUNCTUATION.sub("", _unaccented(text).casefold().translate(_LOOKALIKES))


def _folded(text: str) -> str:
    """Return a name without what models get wrong: letter case and punctuation."""
    return _PUNCTUATION.sub("_", unicodedata.normalize("NFKC", text).casefold()).strip("_")


def _lead(name: ToolName) -> str:
    """Return the prefix of a name with its separator; nothing if it has none."""
    prefix, separator, _ = name.partition("__")
    return prefix + separator if separator else ""


def _grouped(pairs: Iterable[tuple[str, ToolName]]) -> Mapping[str, tuple[ToolName, ...]]:
    groups: dict[str, list[ToolName]] = {}
    for key, name in pairs:
        groups.setdefault(key, []).append(name)
    return {key: tuple(dict.fromkeys(names)) for key, names in groups.items()}


_RESERVED = frozenset(_skeleton(name) for name in RESERVED)
