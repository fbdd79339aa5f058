"""Which server a prompt, a resource or a template of resources belongs to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from aggregator.catalog import Catalog, PromptEntry, Ready, ResourceEntry
from aggregator.fleet.templates import parse
from aggregator.names import ServerName

SCHEME = "aggregator://"
"""What tells apart resources of different servers that have the same URI."""


@dataclass(frozen=True, slots=True)
class Route:
    """A resource as its server knows it."""

    server: ServerName
    uri: str


@dataclass(frozen=True)
class Routes:
    """The way from what clients see to the servers of one catalog.

    The first server in the order of the configuration has a URI as it is; of any other that
    claims the same one it is written behind our scheme and the server's name.
    """

    catalog: Catalog

    @cached_property
    def prompts(self) -> Mapping[str, PromptEntry]:
        """Every prompt by the name clients see."""
        found: dict[str, PromptEntry] = {}
        for state in self._ready:
            for entry in state.offers.prompts:
                found.setdefault(entry.name, entry)
        return found

    @cached_property
    def resources(self) -> Mapping[str, ResourceEntry]:
        """Every listed resource by the URI clients see."""
        return _told_apart(entry for state in self._ready for entry in state.offers.resources)

    @cached_property
    def templates(self) -> Mapping[str, ResourceEntry]:
        """Every template by the form clients see."""
        return _told_apart(entry for state in self._ready for entry in state.offers.templates)

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

    def find(self, uri: str, learned: Mapping[str, ServerName] | None = None) -> Route | None:
        """Find whose a resource is: who listed it, whose template fits, who linked to it."""
        if (marked := self._marked(uri)) is not None:
            return marked
        entry = self.resources.get(uri) or self.templates.get(uri)
        if entry is not None:
            return Route(entry.server, entry.own_uri)
        return self._described(uri) or self._guessed(uri, learned or {})

    def _marked(self, uri: str) -> Route | None:
        if not uri.startswith(SCHEME):
            return None
        for server in self.catalog.servers:
            mark = marked(server, "")
            if uri.startswith(mark):
                return Route(server, uri.removeprefix(mark))
        return None

    def _described(self, uri: str) -> Route | None:
        """Find the template that pins down most of a URI; of equals, the first."""
        best, weight = None, -1
        for entry in self.templates.values():
            template = parse(entry.own_uri)
            if template is not None and template.weight > weight and template.matches(uri):
                best, weight = entry, template.weight
        return None if best is None else Route(best.server, uri)

    def _guessed(self, uri: str, learned: Mapping[str, ServerName]) -> Route | None:
        """Find who linked to a resource that nobody lists, or who alone could have it."""
        if (server := learned.get(uri)) is not None:
            return Route(server, uri)
        readers = [
            name
            for name, state in self.catalog.servers.items()
            if isinstance(state, Ready) and state.offers.reads
        ]
        return Route(readers[0], uri) if len(readers) == 1 else None

    @property
    def _ready(self) -> Iterator[Ready]:
        return (state for state in self.catalog.servers.values() if isinstance(state, Ready))


def marked(server: ServerName, uri: str) -> str:
    """Write a URI behind our scheme and the name of its server."""
    return f"{SCHEME}{quote(server, safe='')}/{uri}"


def _told_apart(entries: Iterator[ResourceEntry]) -> dict[str, ResourceEntry]:
    found: dict[str, ResourceEntry] = {}
    for entry in entries:
        uri = entry.own_uri
        found.setdefault(marked(entry.server, uri) if uri in found else uri, entry)
    return found
