"""Which server a prompt, a resource or a template of resources belongs to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from aggregator.basics.effort import Effort
from aggregator.basics.frozen import frozen
from aggregator.catalog import Addresses, Catalog, PromptEntry, Ready, ResourceEntry, SkillEntry
from aggregator.fleet.templates import MAX_URI, Address, Templates
from aggregator.names import ServerName
from aggregator.toolsearch.offers import is_one_word, server_skill
from aggregator.toolsearch.offers.skills import Skill

SCHEME = "aggregator://"
"""What tells apart resources of different servers that have the same URI."""
OWN_SCHEMES = ("aggregator:", "catalog:")
"""What URIs begin with, in whatever letters, that nobody has but us."""

NOTHING_LEARNED: Mapping[str, ServerName | None] = MappingProxyType({})


class Route(NamedTuple):
    """A resource as its server knows it."""

    server: ServerName
    uri: str


@frozen(slots=False)
class Routes:
    """The way from what clients see to the servers of one catalog.

    The first server in the order of the configuration has a URI as it is; of any other that
    claims the same one, or one of ours, it is written behind our scheme and the server's name.
    """

    catalog: Catalog
    gone: Mapping[ServerName, Ready] = field(default_factory=dict[ServerName, Ready])
    """What servers offered that are not there now; it stays theirs."""
    local: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    """The skills on this machine, by name."""
    closed: frozenset[ServerName] = frozenset()
    """Servers of which nothing is read, whatever they have."""

    @cached_property
    def skills(self) -> Mapping[str, SkillEntry]:
        """Every skill of a server, by the name it is called by."""
        skills = (each for state in self._known for each in state.offers.skills)
        return {server_skill(each): each for each in skills if is_one_word(each.path)}

    @cached_property
    def prompts(self) -> Mapping[str, PromptEntry]:
        """Every prompt by the name clients see."""
        found: dict[str, PromptEntry] = {}
        for state in self._known:
            for entry in state.offers.prompts:
                found.setdefault(entry.name, entry)
        return found

    @cached_property
    def resources(self) -> Mapping[str, ResourceEntry]:
        """Every listed resource by the URI clients see."""
        return _told_apart(state.offers.resource_addresses for state in self._known)

    @cached_property
    def templates(self) -> Mapping[str, ResourceEntry]:
        """Every template by the form clients see."""
        return _told_apart(state.offers.template_addresses for state in self._known)

    @cached_property
    def _describing(self) -> Mapping[ServerName, Templates]:
        """The templates of each server that has any."""
        return {
            name: Templates(entry.own_uri for entry in state.offers.templates)
            for name, state in self.catalog.known.items()
            if state.offers.templates
        }

    @cached_property
    def shown_prompts(self) -> Sequence[dict[str, Any]]:
        """Return the prompts as clients see them."""
        return [{**entry.prompt, "name": name} for name, entry in self.prompts.items()]

    @cached_property
    def shown_resources(self) -> Sequence[dict[str, Any]]:
        """Return the resources as clients see them."""
        return [{**entry.resource, "uri": uri} for uri, entry in self.resources.items()]

    @cached_property
    def shown_templates(self) -> Sequence[dict[str, Any]]:
        """Return the templates as clients see them."""
        return [{**entry.resource, "uriTemplate": uri} for uri, entry in self.templates.items()]

    def lister(self, uri: str) -> ServerName | None:
        """Return the server that a listed URI belongs to, also if it is gone."""
        entry = self._owned.resources.get(uri)
        return None if entry is None else entry.server

    def shown_uri(self, entry: ResourceEntry) -> str:
        """Return a URI by which a resource is read from the server that lists it, and no other."""
        uri = entry.own_uri
        is_theirs = self.lister(uri) == entry.server and not _is_ours(uri)
        return uri if is_theirs else marked(entry.server, uri)

    def leads_to(self, server: ServerName, uri: str) -> bool:
        """Whether a server is the one that a URI which clients are shown is read from."""
        if _is_ours(uri):
            return uri.startswith(marked(server, ""))
        return self.lister(uri) == server

    def prompt(self, name: str) -> PromptEntry | None:
        """Find whose a prompt is, also of a server that is gone."""
        return self._owned.prompts.get(name)

    def tells(self, uri: str, learned: Mapping[str, ServerName | None] = NOTHING_LEARNED) -> bool:
        """Whether a URI is known by itself, and not only by a template that it happens to fit."""
        return uri in self._owned.resources or uri in learned or self._marked(uri) is not None

    def find(
        self,
        uri: str,
        learned: Mapping[str, ServerName | None] = NOTHING_LEARNED,
        effort: Effort | None = None,
    ) -> Route | None:
        """Find whose a resource is: who listed it, who linked to it, whose template fits.

        It may be one that is gone. What one lists or describes and another links to is nobody's,
        since either may pretend, and so is what is linked to by nobody knows whom.
        """
        route = self._found(uri, learned, effort)
        return None if route is None or route.server in self.closed else route

    def _found(
        self, uri: str, learned: Mapping[str, ServerName | None], effort: Effort | None
    ) -> Route | None:
        if (marked := self._marked(uri)) is not None:
            return marked
        if _is_ours(uri):
            return None
        owned, effort = self._owned, effort or Effort()
        entry = owned.resources.get(uri) or owned.templates.get(uri)
        if self.is_learned(uri, learned):
            server = learned[uri]
            owner = owned.describer(uri, effort, least=1) if entry is None else entry.server
            return Route(server, uri) if server is not None and owner in (None, server) else None
        if entry is not None:
            return Route(entry.server, entry.own_uri)
        describer = owned.describer(uri, effort)
        return self._guessed(uri) if describer is None else Route(describer, uri)

    def is_learned(self, uri: str, learned: Mapping[str, ServerName | None]) -> bool:
        """Whether it is known of a URI who links to it, or that several do, of those there are."""
        servers = (None, *(self.catalog.servers.keys() - self.closed))
        return uri in learned and learned[uri] in servers

    def _marked(self, uri: str) -> Route | None:
        if not uri.startswith(SCHEME):
            return None
        for server in self.catalog.servers:
            mark = marked(server, "")
            if uri.startswith(mark):
                return Route(server, uri.removeprefix(mark))
        return None

    def describer(self, uri: str, effort: Effort, least: int = 0) -> ServerName | None:
        """Find the server whose template pins down most of a URI; of equals, the first.

        None of them takes from the effort that is there for those after it. What pins down less
        than `least` does not count.
        """
        describing = self._describing
        if not describing or len(uri) > MAX_URI or not effort.gather(2 * len(uri)):
            return None
        address = Address(uri)
        best, most = None, least - 1
        for number, (server, templates) in enumerate(describing.items()):
            weight = templates.weight(address, effort.part(len(describing) - number))
            if weight > most:
                best, most = server, weight
        return best

    def _guessed(self, uri: str) -> Route | None:
        """Find who alone could have a resource that nobody has told of."""
        catalog = self._owned.catalog
        may_read = [
            name
            for name in catalog.servers
            if name not in catalog.known or catalog.known[name].offers.reads
        ]
        is_known = all(name in self.catalog.known for name in may_read)
        return Route(may_read[0], uri) if len(may_read) == 1 and is_known else None

    @cached_property
    def _owned(self) -> "Routes":
        """The ways as they would be if those who are gone were there."""
        return Routes(Catalog({**self.catalog.servers, **self.gone})) if self.gone else self

    @property
    def _known(self) -> Iterable[Ready]:
        return self.catalog.known.values()


def marked(server: ServerName, uri: str) -> str:
    """Write a URI behind our scheme and the name of its server."""
    return f"{SCHEME}{quote(server, safe='')}/{uri}"


def _told_apart(servers: Iterable[Addresses]) -> dict[str, ResourceEntry]:
    found: dict[str, ResourceEntry] = {}
    for addresses in servers:
        is_plain = _OURS.isdisjoint(addresses.schemes)
        if is_plain and found.keys().isdisjoint(addresses.entries.keys()):
            # Nearly always, and in one step, however many there are.
            found.update(addresses.entries)
            continue
        for uri, entry in addresses.entries.items():
            is_taken = uri in found or _is_ours(uri)
            found.setdefault(marked(entry.server, uri) if is_taken else uri, entry)
    return found


_OURS = frozenset(each.removesuffix(":") for each in OWN_SCHEMES)
_LONGEST = max(map(len, OWN_SCHEMES))


def _is_ours(uri: str) -> bool:
    return uri[:_LONGEST].casefold().startswith(OWN_SCHEMES)
