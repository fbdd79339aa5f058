"""What a search finds: each query answered from one catalog."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, zip_longest

from aggregator.basics.effort import STEPS, Effort, Turn, finished
from aggregator.basics.frozen import frozen
from aggregator.catalog import ToolEntry
from aggregator.names import (
    CLIENT_MARK,
    Ambiguous,
    ToolName,
    folded,
    plain_server,
)
from aggregator.search.hits import Contribution, Hit
from aggregator.search.query import Expression, Keywords, Query, Select
from aggregator.search.repair import likening, nearest
from aggregator.toolsearch.arguments import SearchRequest
from aggregator.toolsearch.offers import Offer
from aggregator.toolsearch.view import View
from aggregator.toolsearch.wording import quoted

MIN_PARTS = 2
"""Parts of a text that may begin names: before and after the sign between server and tool."""
MAX_BEGINNING = 100
"""Characters it may have."""
WORK = 200_000
"""Characters that expressions are held against in one search: some ten milliseconds."""
MAX_HELD = 2_000
"""Characters of a description that they are held against."""
LOOK = 100
"""Steps that a look for a name costs however few servers there are."""
LOOKED_IN_A_STEP = 24
"""Registers of servers in which a short name is looked for twice in the time of one step."""
FEW = 16
"""Tools that are told in the turn in which they were found."""
NEAREST = 3
"""Names offered for one that does not exist."""


@frozen
class Missing:
    """A name that was asked for and means no tool."""

    name: str
    nearest: tuple[str, ...] = ()
    ambiguous: bool = False
    """Do several servers have a tool of this name?"""
    withheld: ToolName | None = None
    """The tool that it means, if that is not offered since it is not as it was approved."""


@frozen
class Explained:
    """Why a tool stands where it does."""

    entry: ToolEntry
    hit: Hit | None
    """None for a tool that was looked up by its name, and is not among the best by its words."""
    why: tuple[Contribution, ...]


@frozen
class Result:
    """What one query found."""

    query: Query
    entries: tuple[ToolEntry, ...] = ()
    ranked: bool = False
    """Are the entries in order of how well they match?"""
    more: bool = False
    """Are there further matches after these?"""
    total: int | None = None
    """How many matches there are, those passed over too, if that is known."""
    missing: tuple[Missing, ...] = ()
    closest: tuple[str, ...] = ()
    """Names like the query, if it found nothing."""
    overview: bool = False
    remark: str = ""
    """What became of a query that could not be answered whole."""
    explained: tuple[Explained, ...] = ()
    """Why each of the entries stands where it does, if that was asked."""
    offers: tuple[Offer, ...] = ()
    """What else was found: prompts, skills, resources."""


@frozen
class Found:
    """What a search found, before it is told."""

    request: SearchRequest
    results: tuple[Result, ...]
    fell_short: bool = False
    """Was it too much to look for names like each that means no tool?"""
    copies: Mapping[ToolName, tuple[ToolName, ...]] = field(
        default_factory=dict[ToolName, tuple[ToolName, ...]]
    )
    """The tools of other servers that say the same as one that was found, for each."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What else was found, once each."""
        found = chain.from_iterable(each.offers for each in self.results)
        return tuple({offer.entry.name: offer for offer in found}.values())

    @property
    def matches(self) -> tuple[ToolEntry, ...]:
        """Every tool that was found, the best of each query first."""
        rounds = zip_longest(*(each.entries for each in self.results))
        found = (entry for entry in chain.from_iterable(rounds) if entry is not None)
        return tuple({entry.name: entry for entry in found}.values())

    @property
    def leading(self) -> frozenset[ToolName]:
        """The matches that are worth their definitions: of each ranking those at its head."""
        most = self.request.max_defined
        heads = (each.entries[: most if each.ranked else None] for each in self.results)
        return frozenset(entry.name for entry in chain.from_iterable(heads))

    @property
    def asked(self) -> frozenset[ToolName]:
        """The matches that were asked for by their names."""
        named = (each.entries for each in self.results if isinstance(each.query, Select))
        return frozenset(entry.name for entry in chain.from_iterable(named))


def search(request: SearchRequest, view: View) -> Found:
    """Answer each query of a request, in one turn."""
    return finished(searching(request, view))


def searching(request: SearchRequest, view: View) -> Generator[None, None, Found]:
    """Answer each query of a request.

    Others may act after each of several, after many names, and before many tools are told.
    """
    effort, results = Effort(), list[Result]()
    for query in request.queries:
        results.append((yield from _result(query, request, view, effort)))
        if len(request.queries) > 1 or len(results[-1].entries) > FEW:
            yield
    return Found(request, tuple(results), effort.fell_short, _copies(results, view))


def _copies(results: Sequence[Result], view: View) -> dict[ToolName, tuple[ToolName, ...]]:
    """Return the tools that say the same as one that was found, and were not found themselves."""
    ranked = [entry for result in results if result.ranked for entry in result.entries]
    if not ranked:
        return {}
    namesakes = view.lookup.namesakes(entry.own_name for entry in ranked)
    known = view.catalog.entries
    matched = {entry.name for result in results for entry in result.entries}
    # Found tools that say the same have the same others, and may be many.
    alike: dict[tuple[str, str], tuple[ToolName, ...]] = {}
    for own, said in {(entry.own_name, entry.description) for entry in ranked}:
        others = (name for name in namesakes[own] if name not in matched and name in known)
        alike[own, said] = tuple(name for name in others if known[name].description == said)
    same = {entry.name: alike[entry.own_name, entry.description] for entry in ranked}
    return {name: others for name, others in same.items() if others}


def _result(
    query: Query, request: SearchRequest, view: View, effort: Effort
) -> Generator[None, None, Result]:
    if isinstance(query, Keywords):
        return _find(query, request, view, effort)
    if isinstance(query, Expression):
        return _match(query, request, view)
    if isinstance(query, Select) and query.names:
        return (yield from _select(query, request.offset, view, effort))
    return Result(query, overview=True)


def _find(query: Keywords, request: SearchRequest, view: View, effort: Effort) -> Result:
    """Find what a query is the name of, or tools and what else there is for it."""
    if (offer := view.shown.named(query.text.strip("`'\""))) is not None:
        return Result(query, offers=(offer,))
    if query.kinds:
        offers, is_more = view.shown.matching(query, request.offset, request.max_results)
    else:
        offers, is_more = view.shown.telling(query) if not request.offset else (), False
    if "tool" not in view.shown.asked(query):
        return Result(query, offers=offers, ranked=True, more=is_more)
    result = _rank(query, request, view, effort)
    return replace(result, offers=offers, more=result.more or is_more)


def _select(
    query: Select, offset: int, view: View, effort: Effort
) -> Generator[None, None, Result]:
    """Look up each name."""
    offers = [view.shown.named(name) for name in query.names]
    rest = [name for name, offer in zip(query.names, offers, strict=True) if offer is None]
    known, entries, missing = view.catalog.entries, list[ToolName](), list[Missing]()
    unmet = list[tuple[str, ToolName | Ambiguous | None]]()
    # However many there are, some of the effort is left for what is like those that mean nothing.
    turn, looking = Turn(), effort.part(4)
    for name in rest:
        found = _meant(name, view, looking)
        if isinstance(found, str) and found in known:
            entries.append(found)
        else:
            unmet.append((name, found))
        if turn.is_over(0 if found == name else LOOK + _looking(name, view)):
            yield
    for name, found in unmet:
        missing.append(_missing(name, found, view, effort))
        if turn.is_over(0 if missing[-1].nearest == () else _likening(name, view)):
            yield
    return Result(
        query,
        _entries(entries, view)[offset:],
        total=len(entries),
        missing=tuple(missing),
        offers=tuple(offer for offer in offers if offer is not None),
    )


def _meant(name: str, view: View, effort: Effort) -> ToolName | Ambiguous | None:
    """Return the tool that a name means; of very many, the last must be written as listed."""
    if (exact := ToolName(name)) in view.catalog.entries and not view.lookup.misses(name):
        return exact
    return view.lookup.find(name) if effort.spend(_looking(name, view)) else None


def _looking(name: str, view: View) -> int:
    """Return the steps that it costs to look for a name in the registers of all servers."""
    return len(view.lookup.registers) * (2 + len(name) // 32) // LOOKED_IN_A_STEP


def _missing(name: str, found: ToolName | Ambiguous | None, view: View, effort: Effort) -> Missing:
    if isinstance(found, str):
        return Missing(name, withheld=found)
    if found:
        return Missing(name, found.candidates, ambiguous=True)
    if view.lookup.absent(name) is not None:
        # What others have that is like it is not what was asked for.
        return Missing(name)
    return Missing(name, _like(name, view, effort))


def _like(name: str, view: View, effort: Effort) -> tuple[str, ...]:
    """Return the names most like one that means no tool, unless there were too many of those."""
    if not effort.spend(_likening(name, view)):
        return ()
    return tuple(nearest(name, view.catalog.entries, NEAREST))


def _likening(name: str, view: View) -> int:
    """Return the steps that it costs to look for names like one."""
    # Two are looked for in a catalog of any size.
    return min(likening(name, len(view.catalog.entries)), STEPS * 3 // 8)


def _rank(query: Keywords, request: SearchRequest, view: View, effort: Effort) -> Result:
    """Rank by words, unless the whole query is a tool's name."""
    text = query.text.strip("`'\"")
    named = _named(text, view)
    if len(named) == 1 and not _is_word(text, named[0]):
        return Result(query, named[request.offset :], total=len(named))
    end = request.offset + request.max_results
    if not named and (begun := _begun(text, view)):
        more = len(begun) > end
        return Result(query, begun[request.offset : end], more=more, total=len(begun))
    # One match beyond the last tells whether there are more.
    hits = view.index.rank(query, end + 1, view.near.get(query))
    # The index may be behind the catalog, which alone says what may be called and how.
    ours = _logins(query, view)
    best = _entries((each.name for each in (*named, *ours, *(hit.entry for hit in hits))), view)
    closest = () if best or not query.terms else _like(query.text, view, effort)
    entries = tuple(best[request.offset : end])
    explained = _explain(query, entries, hits, view) if request.explain else ()
    return Result(
        query,
        entries,
        ranked=True,
        more=len(best) > end,
        total=None if entries else len(best),
        missing=_withheld(text, view),
        closest=closest,
        explained=explained,
    )


_LOGGING_IN = frozenset({"login", "signin", "authenticate", "authentication", "authorize", "oauth"})
"""Words that ask for a login, whoever's."""


def _logins(query: Keywords, view: View) -> tuple[ToolEntry, ...]:
    """Return what has a person log in to the servers that a query names, or is about."""
    if not view.catalog.logins or query.marks:
        return ()
    words = {plain_server(each) for each in (*query.terms, *query.servers)}
    everybody = not query.servers and not words.isdisjoint(_LOGGING_IN)
    named = (each for each in view.catalog.logins if plain_server(each.server) in words)
    return view.catalog.logins if everybody else tuple(named)


def _match(query: Expression, request: SearchRequest, view: View) -> Result:
    """Hold a regular expression against names, and then against what the others say."""
    # Few searches need it, and a start needs none.
    from aggregator.search.pattern import Pattern, PatternError  # noqa: PLC0415

    try:
        pattern = Pattern(query.source, WORK // len(request.queries))
    except PatternError as error:
        return Result(
            query, remark=f"{quoted(query.text)} is not a valid regular expression: {error}."
        )
    known = view.catalog.entries
    named = pattern.within((name, name) for name in known)
    others = (each for name, each in known.items() if name not in named)
    saying = pattern.within((each.name, each.description[:MAX_HELD]) for each in others)
    found = _entries([*named, *saying], view)
    end = request.offset + request.max_results
    remark = _SPENT.format(quoted(query.text)) if pattern.is_spent else ""
    return Result(query, found[request.offset : end], more=len(found) > end, remark=remark)


_SPENT = "{} was not held against all there is: ask for a longer text in it, or by words."


def _withheld(text: str, view: View) -> tuple[Missing, ...]:
    """Return the tool that a text names, if that is not offered."""
    named = ToolName(text)
    return (Missing(text, withheld=named),) if named in view.catalog.withheld else ()


def _explain(
    query: Keywords, entries: Sequence[ToolEntry], hits: Iterable[Hit], view: View
) -> tuple[Explained, ...]:
    """Tell why each tool stands where it does."""
    by_name = {hit.entry.name: hit for hit in hits}
    return tuple(
        Explained(entry, by_name.get(entry.name), view.index.explain(query, entry))
        for entry in entries
    )


def _named(text: str, view: View) -> tuple[ToolEntry, ...]:
    """Return the tools that a text may name."""
    found = None if " " in text else view.lookup.find(text)
    names = found.candidates if isinstance(found, Ambiguous) else [found] if found else []
    return _entries(names, view)


def _begun(text: str, view: View) -> tuple[ToolEntry, ...]:
    """Return the tools whose names begin with a text, as we or a client would write them."""
    parts = text.removesuffix("*").split("__")
    if " " in text or len(parts) < MIN_PARTS or len(text) > MAX_BEGINNING:
        return ()
    rest = parts[1:] if parts[0].lower() == CLIENT_MARK else parts
    whole = plain_server(rest[0])
    if not any(rest[1:]) and whole in view.catalog.plainly:
        return ()
    # A client puts the name it knows us by before ours.
    known_head = [folded("__".join(each)) for each in (rest, rest[1:])]
    known = view.catalog.entries
    found = (
        [
            name
            for name in known
            # Most names are told by their first letter.
            if name[:1].lower() == each[0] and name.lower().replace("__", "_").startswith(each)
        ]
        for each in known_head
        if each
    )
    return _entries(next(filter(None, found), ()), view)


def _is_word(text: str, entry: ToolEntry) -> bool:
    """Tell a word that people search by from a name: `search` is more than one tool."""
    return text.isalpha() and text.islower() and text != entry.name


def _entries(names: Iterable[ToolName], view: View) -> tuple[ToolEntry, ...]:
    known = view.catalog.entries
    return tuple(known[name] for name in dict.fromkeys(names) if name in known)
