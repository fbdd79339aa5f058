"""A profile: what one kind of client sees of everything, and how.

What it hides does not exist for that client. So whatever is not plainly meant to be shown is not:
a server that no rule is addressed to, and what a server has besides tools and prompts where only
some of it is allowed.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase

from aggregator.basics.frozen import frozen
from aggregator.clients import SurfaceChoice, is_meant
from aggregator.config.kinds import FoundKind
from aggregator.config.mode import ToolSearchMode
from aggregator.config.rules import EVERYTHING, Whose, admits, concerns, covers, rule
from aggregator.names import spellings

OTHERS = "others:"
"""What the names begin with of profiles as those see them who do not run us."""


@frozen
class Profile:
    """One named view of the catalog."""

    name: str
    description: str = ""
    """What it is for, in a line for people."""
    servers: tuple[str, ...] = EVERYTHING
    """Globs of the servers that it shows."""
    allow: tuple[str, ...] = EVERYTHING
    deny: tuple[str, ...] = ()
    read_only: bool = False
    """Whether it shows only tools that are known to change nothing."""
    resources: bool = True
    """Whether it shows resources, and the skills that servers have as such."""
    skills: bool = True
    """Whether it shows the skills on this machine."""
    always_load: bool | tuple[str, ...] | None = None
    """What is visible as soon as it is known, in place of what the servers say of it."""
    clients: tuple[str, ...] = ()
    """The clients that it is for unless another is chosen, by any names that they have."""
    tool_search: ToolSearchMode | None = None
    surface: SurfaceChoice | None = None
    max_results: int | None = None
    max_result_chars: int | None = None
    max_result_tokens: int | None = None
    max_loaded: int | None = None
    find: tuple[FoundKind, ...] | None = None
    max_calls_per_minute: int | None = None
    max_calls_in_flight: int | None = None
    personal: bool = True
    """Whether it shows servers that are used in the name of whoever runs us."""

    def is_for(self, client: str) -> bool:
        """Return whether it is for clients that give themselves this name."""
        return any(is_meant(client, name) for name in self.clients)

    def shows_server(self, whose: Whose) -> bool:
        """Return whether a server exists in it, which does not depend on what the server has."""
        is_named = any(fnmatchcase(whose.name, glob) for glob in self.servers)
        return is_named and concerns(self.allow, whose) and not covers(self.deny, whose)

    def shows_resources(self, whose: Whose) -> bool:
        """Return whether it shows what a server has besides tools and prompts."""
        return self.resources and self.shows_server(whose) and covers(self.allow, whose)

    @property
    def shows_all(self) -> bool:
        """Whether it hides nothing of the servers that it shows, and has nothing to say of it."""
        is_open = self.allow == EVERYTHING and not self.deny and not self.read_only
        return is_open and self.resources and self.always_load is None

    def admits(self, whose: Whose, names: Collection[str]) -> bool:
        """Return whether the rules leave something of a server, by each of its own names."""
        return admits(self.allow, self.deny, whose, names)

    def loads(self, whose: Whose, names: Collection[str]) -> bool | None:
        """Return whether a tool is visible as soon as it is known; nothing if that is not said."""
        if self.always_load is None or isinstance(self.always_load, bool):
            return self.always_load
        held = rule(self.always_load, whose)
        return any(held.means(spellings(name, whose.prefix)) for name in names)


def for_others(name: str | None) -> str:
    """Return the name of a profile, or of everything, as those see it who do not run us."""
    return OTHERS + (name or "")


def is_for_others(name: str | None) -> bool:
    """Whether a name is that of a profile as those see it who do not run us."""
    return name is not None and name.startswith(OTHERS)


def plain(name: str) -> str:
    """Return the name of a profile, whoever sees it; nothing for that of everything."""
    return name.removeprefix(OTHERS)


def empty(name: str) -> Profile:
    """Return the profile of a name that the file does not have: it shows nothing."""
    return Profile(name, servers=(), resources=False, skills=False)
