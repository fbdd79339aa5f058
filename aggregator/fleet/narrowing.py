"""What is known now, as clients of one profile see it: what the profile hides is not in it.

There is one place where something is hidden, and this is it. Whoever answers a client works on
what comes out of here, and so cannot tell what is hidden from what does not exist.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from operator import is_
from types import MappingProxyType
from typing import TypeVar

from aggregator.catalog import Catalog, Idle, Offers, Pending, Ready, Scale, ServerState, ToolEntry
from aggregator.catalog.lock import Drift
from aggregator.clients import SurfaceChoice
from aggregator.config import Config, ServerConfig, Settings
from aggregator.config.http import CallLimits
from aggregator.config.profile import Profile, empty
from aggregator.exposure import Deferral
from aggregator.fleet.now import Now, deferral_of, followed, leads_of, missed_tools
from aggregator.fleet.routes import Routes
from aggregator.names import Lookup, ServerName
from aggregator.toolsearch.offers.skills import Skill

NO_SKILLS: Mapping[str, Skill] = MappingProxyType({})
UNUSABLE = "The configuration file as it is now cannot be used"
"""What is told of what is wrong with the file, where that may be about what is hidden."""
UNPINNED = "Tools are not compared with what was approved"
MAX_VERDICTS = 100_000
"""Names on which it is remembered what a profile says of them."""
JUDGED_AT_ONCE = 20
"""Tools that are held against the rules before others have their turn."""

T = TypeVar("T")
Verdict = tuple[bool, bool | None]
"""Whether something is left, and whether it is visible as soon as it is known, if that is said."""


class Narrowing:
    """Takes from what is known all that a profile hides; once at each change.

    What is as it was stays the same object: a change of what is hidden is no change.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        """The name of the profile."""
        self._source: Now | None = None
        self._narrowed: Now | None = None
        self._rules = self._expected = _Rules(empty(name), {})

    def __call__(self, now: Now) -> Now:
        """Return what is known as clients of this profile see it."""
        if self._narrowed is None or now is not self._source:
            self._narrowed = self._taken(now)
            self._source = now
        return self._narrowed

    def judge(self, entry: ToolEntry) -> None:
        """Find out ahead what the rules say of a tool, before somebody waits for it."""
        self._rules.judge(entry)

    def expect(self, config: Config, entries: Iterable[ToolEntry]) -> Generator[None, None, None]:
        """Do so for another configuration, a few tools in each step."""
        rules = self._ruled(config)
        for number, entry in enumerate(entries, 1):
            rules.judge(entry)
            if number % JUDGED_AT_ONCE == 0:
                yield
        self._expected = rules

    def _ruled(self, config: Config) -> "_Rules":
        """Return the rules of a configuration, with what they are known to say."""
        rules = _Rules(config.settings.view(self.name), config.servers)
        known = (self._rules, self._expected)
        return next((each for each in known if each.is_like(rules)), rules)

    def _taken(self, now: Now) -> Now:
        before, source = self._narrowed, self._source
        is_ruled = before is not None and source is not None and source.config is now.config
        if not is_ruled:
            self._rules = self._ruled(now.config)
        rules, shown = self._rules, self._rules.shown
        config = before.config if before and is_ruled else _config(now.config, rules.profile)
        states = {name: state for name, state in now.catalog.servers.items() if name in shown}
        narrowed = {name: rules.state(name, each) for name, each in states.items()}
        catalog = self._catalog(narrowed, now.catalog.scale.only(shown))
        gone = {name: rules.ready(name, s) for name, s in now.routes.gone.items() if name in shown}
        local = now.routes.local if rules.profile.skills else NO_SKILLS
        problem = now.problem and UNUSABLE
        unpinned = now.unpinned and UNPINNED
        told = problem, unpinned, now.unaudited, now.uncounted
        if before and is_ruled and catalog is before.catalog and local is before.routes.local:
            heard = before.problem, before.unpinned, before.unaudited, before.uncounted
            is_same = told == heard
            if is_same and _are_same(gone, before.routes.gone):
                return before
        return Now(
            config,
            catalog,
            self._lookup(config, catalog, gone),
            Routes(catalog, gone, local, rules.closed),
            self._deferral(config, catalog),
            *told,
        )

    def _catalog(self, states: Mapping[ServerName, ServerState], scale: Scale) -> Catalog:
        """Return a catalog, the one there was if it is the same."""
        before = self._narrowed and self._narrowed.catalog
        if before is not None and scale == before.scale and _are_same(states, before.servers):
            return before
        return Catalog(states, scale=scale)

    def _lookup(self, config: Config, catalog: Catalog, gone: Mapping[ServerName, Ready]) -> Lookup:
        before = self._narrowed
        known = Lookup() if before is None else before.lookup
        lookup = followed(known, Catalog() if before is None else before.catalog, catalog)
        missed = missed_tools(config, catalog, gone)
        return replace(lookup, leads=leads_of(config), missed=missed)

    def _deferral(self, config: Config, catalog: Catalog) -> Deferral:
        fresh = deferral_of(config, catalog)
        known = self._narrowed and self._narrowed.deferral
        if known is None or (known.mode, known.threshold) != (fresh.mode, fresh.threshold):
            return fresh
        return known.updated(catalog)


class _Rules:
    """What one profile says of the servers of one configuration, and has said of their tools."""

    def __init__(self, profile: Profile, servers: Mapping[ServerName, ServerConfig]) -> None:
        self.profile = profile
        self.shown = {name: server for name, server in servers.items() if _shows(profile, server)}
        """The servers that exist for it."""
        self._read = {
            name for name, server in self.shown.items() if profile.shows_resources(server.whose)
        }
        self.closed = frozenset(self.shown.keys() - self._read)
        """Those of which it shows no resource."""
        self._verdicts: dict[tuple[ServerName, str], Verdict] = {}
        self._states: dict[ServerName, tuple[ServerState, ServerState]] = {}
        self._readies: dict[ServerName, tuple[Ready, Ready]] = {}

    def is_like(self, other: "_Rules") -> bool:
        """Whether others would say the same."""
        names = {name: (each.whose, each.rename) for name, each in self.shown.items()}
        others = {name: (each.whose, each.rename) for name, each in other.shown.items()}
        return self.profile == other.profile and names == others

    def judge(self, entry: ToolEntry) -> None:
        """Find out what they say of a tool."""
        if entry.server in self.shown and not self.profile.shows_all:
            self._verdict(entry.server, entry.own_name)

    def state(self, name: ServerName, state: ServerState) -> ServerState:
        """Return the state of a server without what is hidden of it."""
        source, narrowed = self._states.get(name, (None, None))
        if source is not state or narrowed is None:
            narrowed = self._narrowed(name, state)
            self._states[name] = state, narrowed
        return narrowed

    def _narrowed(self, name: ServerName, state: ServerState) -> ServerState:
        match state:
            case Ready():
                return self.ready(name, state)
            case Pending(known=Ready() as known) | Idle(known=known):
                return replace(state, known=self.ready(name, known))
            case _:
                return state

    def ready(self, name: ServerName, ready: Ready) -> Ready:
        """Return what a server offers without what is hidden of it."""
        if self.profile.shows_all:
            return ready
        source, narrowed = self._readies.get(name, (None, None))
        if source is None or narrowed is None:
            narrowed = self._left(name, ready, None, None)
        elif source is not ready:
            left = self._left(name, ready, source, narrowed)
            # When a server listed something else last, of which nothing is shown, is nobody's news.
            since = narrowed.since if isinstance(self._last(name), Ready) else left.since
            narrowed = narrowed if replace(left, since=since) == narrowed else left
        self._readies[name] = ready, narrowed
        return narrowed

    def _last(self, name: ServerName) -> ServerState | None:
        """Return the state that a server was in before."""
        return self._states[name][0] if name in self._states else None

    def _left(
        self, name: ServerName, ready: Ready, source: Ready | None, before: Ready | None
    ) -> Ready:
        """Return what is left of an offer; what was left of the same before is not new."""
        if source and before and source.entries is ready.entries and source.listed is ready.listed:
            entries, listed = before.entries, before.listed
        else:
            entries = _same(before and before.entries, self._tools(name, ready.entries))
            listed = _same(before and before.listed, self._tools(name, ready.listed))
        whole = {each.own_name for each in (*entries, *listed)}
        drift = tuple(each for each in ready.drift if self._tells(name, each, whole))
        offers = self._offers(name, ready.offers)
        return replace(
            ready,
            entries=entries,
            listed=listed,
            drift=drift,
            offers=offers if before is None or offers != before.offers else before.offers,
            # They name tools that are not there, of which nobody knows whether they are hidden.
            refused=(),
            unmatched=(),
        )

    def _tools(self, name: ServerName, entries: tuple[ToolEntry, ...]) -> tuple[ToolEntry, ...]:
        left: list[ToolEntry] = []
        for entry in entries:
            is_left, loads = self._verdict(name, entry.own_name)
            if is_left and (entry.read_only or not self.profile.read_only):
                is_said = loads is not None and loads is not entry.always_load
                left.append(replace(entry, always_load=bool(loads)) if is_said else entry)
        return tuple(left)

    def _tells(self, name: ServerName, drift: Drift, whole: set[str]) -> bool:
        """Whether a tool that differs from what was approved is one that exists, or could."""
        is_left, _ = self._verdict(name, drift.tool)
        return drift.tool in whole or (is_left and not self.profile.read_only)

    def _offers(self, name: ServerName, offers: Offers) -> Offers:
        prompts = tuple(each for each in offers.prompts if self._verdict(name, each.own_name)[0])
        if name in self._read:
            return replace(offers, prompts=_same(offers.prompts, prompts))
        unlisted = offers.unlisted - {"resources"}
        own = replace(offers, resources=(), templates=(), skills=(), reads=False)
        return replace(own, prompts=prompts, unlisted=unlisted)

    def _verdict(self, name: ServerName, own_name: str) -> Verdict:
        verdict = self._verdicts.get((name, own_name))
        if verdict is None:
            server, profile = self.shown[name], self.profile
            names = {own_name, server.renamed(own_name)}
            verdict = profile.admits(server.whose, names), profile.loads(server.whose, names)
            if len(self._verdicts) >= MAX_VERDICTS:
                self._verdicts.clear()
            self._verdicts[name, own_name] = verdict
        return verdict


def _shows(profile: Profile, server: ServerConfig) -> bool:
    """Whether a server exists in a profile."""
    is_for_them = profile.personal or not server.is_personal
    return is_for_them and profile.shows_server(server.whose)


def _config(config: Config, profile: Profile) -> Config:
    """Return a configuration with the servers of a profile alone, and treated as that says."""
    servers = {name: each for name, each in config.servers.items() if _shows(profile, each)}
    return replace(config, servers=servers, settings=_settings(config.settings, profile))


def _settings(settings: Settings, profile: Profile) -> Settings:
    # The word of a person about a profile comes before that about a client.
    clients = settings.clients if profile.surface is None else dict[str, SurfaceChoice]()
    limit, limits = settings.max_result_tokens, settings.result_limits
    if profile.max_result_tokens is not None:
        limit, limits = profile.max_result_tokens, dict[str, int]()
    calls = CallLimits(profile.max_calls_per_minute, profile.max_calls_in_flight)
    return replace(
        settings,
        http=settings.http._replace(limits=calls.otherwise(settings.http.limits)),
        tool_search=profile.tool_search or settings.tool_search,
        surface=profile.surface or settings.surface,
        max_results=profile.max_results or settings.max_results,
        max_result_chars=profile.max_result_chars or settings.max_result_chars,
        max_loaded=profile.max_loaded or settings.max_loaded,
        find=settings.find if profile.find is None else profile.find,
        clients=clients,
        max_result_tokens=limit,
        result_limits=limits,
        skills=settings.skills if profile.skills else (),
    )


def _same(before: tuple[T, ...] | None, after: tuple[T, ...]) -> tuple[T, ...]:
    """Return what there was if it is the same by now."""
    return before if before is not None and before == after else after


def _are_same(one: Mapping[ServerName, object], other: Mapping[ServerName, object]) -> bool:
    """Whether the same servers have the same objects, in the same order."""
    return list(one) == list(other) and all(map(is_, one.values(), other.values()))
