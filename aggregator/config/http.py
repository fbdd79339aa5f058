"""Who may come in over HTTP by the word of an issuer, what they see, and how much they may ask."""

from collections.abc import Collection, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from aggregator.basics.frozen import frozen
from aggregator.config.profile import Profile

SCOPE = "scope:"
"""What the names begin with of what rules show that name no profile: none that an address has."""


class CallLimits(NamedTuple):
    """How much one identity may ask; nothing stands for as much as it likes."""

    per_minute: int | None = None
    in_flight: int | None = None

    def otherwise(self, other: "CallLimits") -> "CallLimits":
        """Return these, and what another says where they say nothing."""
        return CallLimits(
            other.per_minute if self.per_minute is None else self.per_minute,
            other.in_flight if self.in_flight is None else self.in_flight,
        )


class AccessRule(NamedTuple):
    """What whoever has some scopes sees."""

    scopes: tuple[str, ...]
    """All of these are needed."""
    profile: str
    """The name of a profile, or of what only this rule shows."""
    is_wide: bool = False
    """Whether it hides nothing, so that the address may choose what is seen."""


class Issuer(NamedTuple):
    """Whose word is taken for who somebody is, and for what."""

    name: str
    """What it calls itself, to the letter."""
    audiences: tuple[str, ...]
    """What its tokens must be meant for: one of these."""
    resource: str
    """The address by which clients know us."""
    ca_file: Path | None = None
    access: tuple[AccessRule, ...] = ()
    """The first that fits holds; if none does, nobody is let in."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """All that a rule asks for, each once."""
        return tuple(dict.fromkeys(scope for rule in self.access for scope in rule.scopes))


@frozen
class Replicas:
    """What several processes that serve the same clients have in common."""

    key: Path | None = None
    """The file of keys by which they know each other."""
    store: str | None = field(default=None, repr=False)
    """The address of a store, which may have a password in it."""


class Http(NamedTuple):
    """How clients over HTTP are treated."""

    issuer: Issuer | None = None
    local_token: bool = True
    """Whether our own token opens the door, too."""
    limits: CallLimits = CallLimits()
    views: Mapping[str, Profile] = MappingProxyType({})
    """What rules show that name no profile."""
    replicas: Replicas = Replicas()
    """Those who serve the same clients, as the file has it when we start."""


class Entry(NamedTuple):
    """What somebody may see at an address."""

    profile: str


class Lacking(NamedTuple):
    """The scopes without which somebody sees nothing at an address."""

    scopes: tuple[str, ...]


def entry(issuer: Issuer, scopes: Collection[str], asked: str | None) -> Entry | Lacking | None:
    """Say what whoever has some scopes sees at the address of a profile, or at that of none.

    At the address of what no rule shows there is nothing, for anybody.
    """
    rules = [
        rule for rule in issuer.access if asked is None or rule.is_wide or rule.profile == asked
    ]
    for rule in rules:
        if set(rule.scopes) <= set(scopes):
            return Entry(rule.profile if asked is None else asked)
    return Lacking(rules[0].scopes) if rules else None
