"""The way back from what a model writes to the tool it means."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType
from typing import NamedTuple

from aggregator.basics.frozen import frozen
from aggregator.names.forms import (
    BOUNDARY,
    CLIENT_MARK,
    MAX_TEXT,
    ServerName,
    ToolName,
    folded,
)
from aggregator.names.leads import NO_LEADS, Leads


class Ambiguous(NamedTuple):
    """Several tools that a text may mean, in configuration order."""

    candidates: tuple[ToolName, ...]


class Forms(NamedTuple):
    """The ways in which the name of one tool may be written."""

    name: ToolName
    own: str
    """Its name on the server."""
    caseless: str
    bare: str
    """Its name on the server without case and signs."""
    qualified: tuple[str, ...]
    """The same with its server before it."""

    @classmethod
    def of(cls, name: ToolName, server: ServerName, own: str) -> "Forms":
        """Return the ways in which a name may be written; of thousands, that takes a while."""
        spelled = {name, f"{server}__{own}", f"{_lead(name)}{own}"}
        qualified = tuple(dict.fromkeys(map(folded, spelled)))
        return cls(name, own, name.casefold(), folded(own), qualified)


@frozen(slots=False)
class Register:
    """The tools of one server, by every way in which their names may be written."""

    server: ServerName
    tools: tuple[Forms, ...]
    written: Mapping[str, Sequence[Forms]] = field(repr=False, compare=False)
    """The tools by their names without case and signs, which every other form comes down to."""

    @classmethod
    def of(cls, server: ServerName, tools: Iterable[Forms]) -> "Register":
        """Return the register of a server, complete: nobody who looks for a tool waits for it."""
        known, written = tuple(tools), dict[str, list[Forms]]()
        # It is made in one turn, of thousands of tools as well: nothing is called for each.
        for each in known:
            forms = each.qualified
            for form in forms if each.bare in forms else (each.bare, *forms):
                if form in written:
                    written[form].append(each)
                else:
                    written[form] = [each]
        return cls(server, known, written)

    @property
    def prefix(self) -> str:
        """What the names of all its tools begin with; empty if nothing."""
        heads = {_lead(each.name).removesuffix("__") for each in self.tools}
        return heads.pop() if len(heads) == 1 else ""

    def has(self, name: str) -> bool:
        """Whether a tool has exactly this name."""
        return any(each.name == name for each in self.written.get(folded(name), ()))


class _Candidate(NamedTuple):
    """A tool that a text may mean, and whose it is."""

    server: ServerName
    forms: Forms


MAX_RESTS = 12
"""Signs in a name behind which what a client has put before it may end."""


@frozen(slots=False)
class Lookup:
    """Finds the tool a model means, however it writes the name.

    A text that is addressed to a server means a tool of that server, or none.
    """

    registers: tuple[Register, ...] = ()
    """Those of all servers that are ready, in configuration order."""
    leads: Leads = NO_LEADS
    """Those of all servers that are configured."""
    missed: tuple[Register, ...] = ()
    """Those of servers that are gone, of tools whose names do not say whose they are."""
    ours: tuple[Register, ...] = ()
    """Those of our own tools that belong to servers which need not be ready."""

    @classmethod
    def of(
        cls,
        triples: Iterable[tuple[ToolName, ServerName, str]],
        absent: Mapping[ServerName, str] = MappingProxyType({}),
    ) -> "Lookup":
        """Return the lookup of some tools: the name of each, its server, its name there.

        `absent` are servers besides those, and their prefixes.
        """
        found: dict[ServerName, list[Forms]] = {}
        for name, server, own in triples:
            found.setdefault(server, []).append(Forms.of(name, server, own))
        registers = tuple(Register.of(server, tools) for server, tools in found.items())
        return cls(registers, Leads({**absent, **{each.server: each.prefix for each in registers}}))

    def find(self, text: str) -> ToolName | Ambiguous | None:
        """Return the tool that a text names, the closest spelling first."""
        text = text.strip()
        if len(text) > MAX_TEXT:
            return None
        alike = [self._alike(text, each) for each in (self.registers, self.ours)]
        if not self.misses(text) and any(each.forms.name == text for each in chain(*alike)):
            return ToolName(text)
        named = self.addressed(text)
        meant = ([each for each in part if not named or each.server in named] for part in alike)
        return next(filter(None, (_Choice(tuple(each)).find(text) for each in meant)), None)

    def _alike(self, text: str, registers: Iterable[Register]) -> list[_Candidate]:
        """Return the tools that a text, or what a client has put something before, may mean."""
        forms = dict.fromkeys(map(folded, (text, *_rests(text))))
        return [
            _Candidate(each.server, found)
            for each in registers
            for form in forms
            if form in each.written
            for found in each.written[form]
        ]

    def addressed(self, text: str) -> tuple[ServerName, ...]:
        """Return the servers that a text can be meant for; none if it may be any.

        What may be meant for one that is not ready is not meant for another, not even for one that
        has nearly the same name.
        """
        text = text.strip()
        if len(text) > MAX_TEXT:
            return ()
        if missed := self._missed(text):
            return missed
        found: list[ServerName] = []
        for named in self.leads.addressed(text):
            if absent := [each for each in named if each not in self._ready]:
                return (*found, *absent)
            found += named
        rests = () if found or not self.missed else _rests(text)
        return next((missed for rest in rests if (missed := self._missed(rest))), tuple(found))

    def absent(self, text: str) -> ServerName | None:
        """Return the server that a text is addressed to, if that is not ready."""
        return next((each for each in self.addressed(text) if each not in self._ready), None)

    @cached_property
    def _ready(self) -> frozenset[ServerName]:
        """The servers that are ready."""
        return frozenset(each.server for each in self.registers)

    def misses(self, name: str) -> bool:
        """Whether a name is exactly that of a tool whose server is gone."""
        return bool(self.missed) and any(each.has(name) for each in self.missed)

    def namesakes(self, names: Iterable[str]) -> Mapping[str, Sequence[ToolName]]:
        """Return the tools of all servers that have each of these names there."""
        found: dict[str, list[ToolName]] = {name: [] for name in names}
        forms = set(map(folded, found))
        # Whatever is fewer is looked at, the names or the tools of a server.
        for register in self.registers:
            for form in register.written.keys() & forms:
                for each in register.written[form]:
                    if each.own in found:
                        found[each.own].append(each.name)
        return found

    def _missed(self, text: str) -> tuple[ServerName, ...]:
        """Return the servers that are gone and had a tool that is written like this."""
        if exact := tuple(each.server for each in self.missed if each.has(text)):
            return exact
        if not self.missed or not (plain := folded(text)):
            return ()
        return tuple(each.server for each in self.missed if plain in each.written)


class _Choice(NamedTuple):
    """The tools that a text may mean, closely or not."""

    candidates: tuple[_Candidate, ...]

    def find(self, text: str) -> ToolName | Ambiguous | None:
        for found in self._by_closeness(text):
            if candidates := tuple(dict.fromkeys(found)):
                return self._narrowed(candidates, text)
        return None

    def _by_closeness(self, text: str) -> Iterator[list[ToolName]]:
        yield [each.name for each in self._forms if each.own == text]
        yield self._caseless(text)
        if plain := folded(text):
            yield self._qualified(plain)
            yield [each.name for each in self._forms if each.bare == plain]
            yield from self._behind_client_prefix(text)

    @property
    def _forms(self) -> Iterator[Forms]:
        return (each.forms for each in self.candidates)

    def _named(self, text: str) -> list[ToolName]:
        return [each.name for each in self._forms if each.name == text]

    def _caseless(self, text: str) -> list[ToolName]:
        caseless = text.casefold()
        return [each.name for each in self._forms if each.caseless == caseless]

    def _qualified(self, plain: str) -> list[ToolName]:
        return [each.name for each in self._forms if plain in each.qualified]

    def _behind_client_prefix(self, text: str) -> Iterator[list[ToolName]]:
        is_marked = text.casefold().startswith(CLIENT_MARK)
        for rest in _rests(text):
            if "__" in rest:
                yield self._named(rest) or self._caseless(rest)
            if is_marked:
                yield self._qualified(folded(rest))

    def _narrowed(self, candidates: tuple[ToolName, ...], text: str) -> ToolName | Ambiguous:
        """Prefer the candidates whose own name, then whose server, is spelled exactly so."""
        homes = {each.forms.name: each for each in reversed(self.candidates)}
        spelled = tuple(name for name in candidates if text.endswith(homes[name].forms.own))
        candidates = spelled or candidates
        spelled = tuple(name for name in candidates if homes[name].server in text)
        candidates = spelled or candidates
        return candidates[0] if len(candidates) == 1 else Ambiguous(candidates)


def _lead(name: ToolName) -> str:
    """Return the prefix of a name with its separator; nothing if it has none."""
    prefix, separator, _ = name.partition("__")
    return prefix + separator if separator else ""


def _rests(text: str) -> Iterator[str]:
    """Leave out more and more of what a client may have put before a name."""
    is_marked = text.casefold().startswith(CLIENT_MARK)
    boundaries = islice(BOUNDARY.finditer(text), MAX_RESTS)
    rests = (text[boundary.start() :] for boundary in boundaries)
    return (rest for rest in rests if is_marked or "__" in rest)
