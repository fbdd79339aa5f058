"""What is known now, as one value: replaced whole at every change, read once by each request."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from aggregator.basics.frozen import frozen
from aggregator.catalog import Catalog, Failed, Idle, Pending, Ready, Scale, ServerState, ToolEntry
from aggregator.config import Config
from aggregator.downstream.review import NO_REVIEWS, Reviews, restricted
from aggregator.exposure import Deferral
from aggregator.fleet.routes import Routes
from aggregator.fleet.starting import is_first_try
from aggregator.names import (
    RESERVED,
    Ambiguous,
    Leads,
    Lookup,
    MetaTools,
    Register,
    ServerName,
    ToolName,
)
from aggregator.toolsearch.offers.skills import Skill


@frozen
class Now:
    """The configuration in use, the catalog, and whatever follows from the two."""

    config: Config
    catalog: Catalog
    lookup: Lookup
    """The way from what a model calls a tool to its name."""
    routes: Routes
    """The way to every resource and prompt."""
    deferral: Deferral
    problem: str | None = None
    """Why the file as it is now is not the configuration in use, if it is not."""
    unpinned: str | None = None
    """Why nothing is compared with what was approved, if something was meant to be."""
    unaudited: str | None = None
    """Why calls are not written down, if they were meant to be."""

    uncounted: str | None = None
    """Why it is not counted what definitions cost, if it was meant to be."""
    untried: frozenset[ServerName] = frozenset()
    """Those of the first configuration that have neither been there nor failed yet: ever fewer."""

    def __repr__(self) -> str:
        return f"<Now {self.catalog!r}{'' if self.problem is None else f', {self.problem}'}>"

    @classmethod
    def starting(
        cls, config: Config, since: float, known: Mapping[ServerName, Ready] | None = None
    ) -> "Now":
        """Return what is known before any server has been heard of in this run."""
        known = known or {}
        catalog = Catalog(
            {name: Pending(since=since, known=known.get(name)) for name in config.enabled}
        )
        registers = tuple(_register(name, each.entries) for name, each in catalog.known.items())
        lookup = Lookup(registers, leads_of(config))
        routes, deferral = Routes(catalog), deferral_of(config, catalog)
        return cls(config, catalog, lookup, routes, deferral, untried=frozenset(catalog.servers))

    def with_state(self, server: ServerName, state: ServerState) -> "Now":
        """Return what is known once a server has a new state."""
        catalog = self.catalog.updated(server, state)
        return self._with_catalog(catalog, self.deferral.updated(catalog))

    def with_config(self, config: Config, catalog: Catalog, reviews: Reviews = NO_REVIEWS) -> "Now":
        """Return what is known once another configuration is in use.

        What it forbids holds from here on, whenever the rest of it can be shown.
        """
        left = Catalog(
            {
                name: state
                if config.servers[name] == self.config.servers.get(name)
                else allowed(config, name, state, reviews)
                for name, state in catalog.servers.items()
            },
            scale=self.catalog.scale,
        )
        changed = self._with_catalog(left, deferral_of(config, left))
        gone = {
            name: restricted(config.servers[name], state, reviews.get(name))
            for name, state in changed.routes.gone.items()
        }
        missed = missed_tools(config, left, gone)
        lookup = replace(changed.lookup, leads=leads_of(config), missed=missed)
        routes = Routes(left, gone, self.routes.local)
        return replace(changed, config=config, lookup=lookup, routes=routes, problem=None)

    def with_skills(self, skills: Iterable[Skill]) -> "Now":
        """Return what is known once the skills on this machine have been read."""
        local = {skill.name: skill for skill in skills}
        return replace(self, routes=Routes(self.catalog, self.routes.gone, local))

    def with_scale(self, scale: Scale, problem: str | None) -> "Now":
        """Return what is known once it has been counted what definitions cost, or cannot be."""
        catalog = replace(self.catalog, scale=scale)
        changed = self._with_catalog(catalog, self.deferral.updated(catalog))
        return replace(changed, uncounted=problem)

    def with_problem(self, problem: str) -> "Now":
        """Return what is known once the file has been found to be unusable."""
        return replace(self, problem=problem)

    @property
    def descriptions(self) -> Mapping[ServerName, str]:
        """What the configuration says of each server."""
        return {name: server.description for name, server in self.config.enabled.items()}

    def state(self, server: ServerName) -> ServerState:
        """Return the state of a server, also of one that has been taken out of the file."""
        return self.catalog.servers.get(server) or Failed("it is no longer configured")

    @property
    def own_names(self) -> MetaTools:
        """What our own tools are called."""
        return self.config.settings.names

    def own_tool(self, name: str) -> str | None:
        """Return what our tool of this name is called, if it is one of ours.

        A name that the configuration has changed still means the same, unless a server has it.
        """
        own = self.config.settings.names
        if name in own:
            return name
        is_own = name in RESERVED and ToolName(name) not in self.catalog.entries
        return own[RESERVED.index(name)] if is_own else None

    def find(self, text: str) -> ToolName | Ambiguous | None:
        """Find the tool a text means."""
        # What is written as it is listed needs no other way, which has to be found out first.
        name = ToolName(text)
        is_listed = name in self.catalog.entries and not self.lookup.misses(name)
        return name if is_listed else self.lookup.find(text)

    def _with_catalog(self, catalog: Catalog, deferral: Deferral) -> "Now":
        gone = _gone(self.routes, catalog)
        lookup = followed(self.lookup, self.catalog, catalog)
        return replace(
            self,
            catalog=catalog,
            lookup=replace(lookup, missed=missed_tools(self.config, catalog, gone)),
            routes=Routes(catalog, gone, self.routes.local),
            deferral=deferral,
            untried=_still_untried(self.untried, catalog),
        )


def allowed(
    config: Config, server: ServerName, state: ServerState, reviews: Reviews = NO_REVIEWS
) -> ServerState:
    """Return a state without what a configuration forbids."""
    review = reviews.get(server)
    match state:
        case Ready():
            return restricted(config.servers[server], state, review)
        case Pending(known=Ready() as known) | Idle(known=known):
            return replace(state, known=restricted(config.servers[server], known, review))
        case _:
            return state


def _still_untried(before: frozenset[ServerName], after: Catalog) -> frozenset[ServerName]:
    """Return which of these servers are still being tried for the first time."""
    states = after.servers
    return frozenset(name for name in before if name in states and is_first_try(states[name]))


def _gone(before: Routes, after: Catalog) -> Mapping[ServerName, Ready]:
    """Return what servers last offered that are configured and of which it is no longer known."""
    offered = {**before.gone, **before.catalog.known}
    return {name: offered[name] for name in after.servers.keys() - after.known if name in offered}


def missed_tools(
    config: Config, catalog: Catalog, gone: Mapping[ServerName, Ready]
) -> tuple[Register, ...]:
    """Return the tools whose server is gone, where no prefix says whose they are."""
    bare = {name: state for name, state in gone.items() if not config.servers[name].prefix}
    if not bare:
        return ()
    # Also what is withheld: nobody else has been approved in its place.
    whole = Catalog({**catalog.servers, **bare})
    tools = {
        name: [entry for entry in state.whole if whole.owner(entry.name) == name]
        for name, state in bare.items()
    }
    return tuple(_register(name, entries) for name, entries in tools.items())


def leads_of(config: Config) -> Leads:
    """Return what a text begins with that is addressed to a server, also to a disabled one."""
    return Leads({name: server.prefix for name, server in config.servers.items()})


def deferral_of(config: Config, catalog: Catalog) -> Deferral:
    """Return whether tools are deferred, where nothing was known before."""
    settings = config.settings
    return Deferral.starting(settings.tool_search, settings.context_window).updated(catalog)


def followed(lookup: Lookup, before: Catalog, after: Catalog) -> Lookup:
    """Return the lookup of a newer catalog; servers with the same tools keep their registers."""
    known = {register.server: register for register in lookup.registers}
    registers: list[Register] = []
    for name, state in after.known.items():
        earlier = before.known.get(name)
        is_same = earlier is not None and earlier.whole is state.whole
        registers.append(known[name] if is_same else _register(name, state.whole))
    return Lookup(tuple(registers), lookup.leads)


def _register(server: ServerName, entries: Iterable[ToolEntry]) -> Register:
    return Register.of(server, (entry.forms for entry in entries))
