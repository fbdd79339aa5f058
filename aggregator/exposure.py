"""Which tools one client sees, on which surface."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Literal, NamedTuple

from aggregator.basics.eras import Era
from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object
from aggregator.catalog import BY_LENGTH, Catalog, ToolEntry
from aggregator.clients import ClientProfile, SurfaceChoice
from aggregator.config.mode import ToolSearchMode
from aggregator.names import RESERVED, MetaTools, ServerName, ToolName

Surface = Literal["promote", "hybrid", "relay", "full"]


class Way(NamedTuple):
    """How a client's model calls a tool: by its own name, or through one of the meta-tools."""

    through: str = ""
    """The meta-tool it is called through, if it is."""
    listed: bool = True
    """Whether a tool that is called by its own name is in the model's list by now."""
    standing: str = ""
    """What there is to know of its server, if that is not connected, and of the tool."""
    kind: str = ""
    """What it is, if it is no tool."""


ALWAYS_LOAD = "anthropic/alwaysLoad"
"""The `_meta` key that keeps a client which defers tools by itself from hiding one again."""
SETTLED_TIME_TO_LIVE = 2_000
"""Milliseconds a list may be kept once no server is pending.

An edit of `servers.yaml` or a word of a server may change it at any moment: this saves a client
that lists for each of its requests the repetition, and no person waits longer for what was added.
"""


@frozen
class Choice:
    """A surface, and why it was chosen."""

    surface: Surface
    why: str
    pinned: bool = False
    """Whether it is the word of a person."""
    rests_on_client: bool = False
    """Whether it follows from what is known of the client, which `why` then says first."""
    remark: str = ""
    """What `why` then adds."""

    @property
    def relaying(self) -> bool:
        """Whether the meta-tools that call another tool are offered."""
        # A client that lists again too late for its model's next step has no other way. Who pins
        # `promote` wants each tool called, and so approved, by its own name.
        return not (self.pinned and self.surface == "promote")


@frozen
class Exposure:
    """How one client reaches the catalog now."""

    surface: Surface
    searching: bool
    """Whether the meta-tools are offered where there is something to search or to wait for."""
    why: str
    relaying: bool = True
    """Whether those that call another tool are among them."""


def expose(
    deferral: "Deferral",
    setting: SurfaceChoice,
    era: Era,
    profile: ClientProfile,
    observed_relist: bool | None,
) -> Exposure:
    """Decide how one client reaches a catalog of this size."""
    if deferral.mode.never:
        return Exposure("full", searching=False, why="tool search is switched off")

    choice = explain_surface(setting, era, profile, observed_relist)
    if choice.surface == "full":
        return Exposure("full", searching=False, why=choice.why)
    if not deferral.deferring:
        return Exposure("full", searching=True, why=deferral.why)
    return Exposure(choice.surface, searching=True, why=choice.why, relaying=choice.relaying)


def explain_surface(
    setting: SurfaceChoice, era: Era, profile: ClientProfile, observed_relist: bool | None
) -> Choice:
    """Choose a surface; the word of a person comes first, then the era, then the client."""
    wanted = setting if profile.surface is None else profile.surface
    if wanted == "auto":
        return _automatic(era, profile, observed_relist)
    if era == "modern" and wanted in {"promote", "hybrid"}:
        return Choice("relay", f"`{wanted}` is configured, but this era forbids a growing list")
    return Choice(wanted, "it is configured", pinned=True)


def _automatic(era: Era, profile: ClientProfile, observed_relist: bool | None) -> Choice:
    if era == "modern":
        return Choice("relay", "in this era a search must not change the list")

    match profile.calls_late_tools, observed_relist:
        case True, False:
            return _by_client("hybrid", profile, "; but it was seen not to list again")
        case True, _:
            return _by_client("promote", profile)
        case None, False:
            return _by_client("relay", profile, "; it was seen not to list again")
        case None, _:
            # Seen to list again is no proof that its model gets the new tools in time.
            return _by_client("hybrid", profile, "; so both ways are open")
        case _:
            # Nor is it worth a changed list: what is known of these clients is about the model.
            return _by_client("relay", profile)


def _by_client(surface: Surface, profile: ClientProfile, remark: str = "") -> Choice:
    why = f"{profile.title}: {profile.evidence}{remark}"
    return Choice(surface, why, rests_on_client=True, remark=remark)


def visible(
    catalog: Catalog,
    *,
    surface: Surface,
    meta_tools: Sequence[JsonObject],
    loaded: Iterable[ToolName],
    searching: bool,
) -> tuple[JsonObject, ...]:
    """Return the one page that answers `tools/list`; `meta_tools` are those of the surface."""
    full = surface == "full" or not searching
    shown: dict[str, JsonObject] = {}
    if searching and _is_search_useful(catalog, full=full):
        shown |= {tool["name"]: tool for tool in meta_tools}

    chosen = catalog.entries.values() if full else _chosen(catalog, surface, loaded)
    for entry in chosen:
        if entry.name not in shown:
            shown[entry.name] = definition(entry, keep=entry.always_load or not full)
    return tuple(shown.values())


def offers_calls(catalog: Catalog, exposure: Exposure) -> bool:
    """Say whether the meta-tools that call another tool are in a client's list."""
    is_offered = exposure.searching and exposure.relaying and exposure.surface != "full"
    return is_offered and _is_search_useful(catalog, full=False)


def _is_search_useful(catalog: Catalog, *, full: bool) -> bool:
    """Say whether a search could find, or tell, what the list does not show."""
    if catalog.pending or full:
        return bool(catalog.pending)
    # A failed server has nothing to find, but only a search can tell why its tools are missing,
    # and so it is with tools that nobody has approved.
    is_missed = bool(catalog.failed or catalog.withheld)
    return is_missed or len(catalog.always_loaded) < len(catalog.entries)


def _chosen(catalog: Catalog, surface: Surface, loaded: Iterable[ToolName]) -> Iterator[ToolEntry]:
    yield from catalog.always_loaded
    if surface != "relay":
        yield from (catalog.entries[name] for name in loaded if name in catalog.entries)


def definition(entry: ToolEntry, *, keep: bool) -> JsonObject:
    """Return an entry as a client lists it; `keep` asks the client not to defer it by itself."""
    meta = as_object(entry.tool.get("_meta"))
    if keep:
        return {**entry.shown, "_meta": {**meta, ALWAYS_LOAD: True}}
    if not meta.get(ALWAYS_LOAD):
        return entry.shown
    # A wish that is not granted to the server is not passed on to the client either.
    left = {key: value for key, value in meta.items() if key != ALWAYS_LOAD}
    return {**entry.shown, "_meta": left}


def way_to_call(
    entry: ToolEntry, *, listed: bool, relaying: bool, names: MetaTools = RESERVED
) -> Way:
    """Say how this client's model calls a found tool: by its own name only once it is listed."""
    if listed or not relaying:
        return Way(listed=listed)
    return Way(names.call_read_only if entry.read_only else names.call)


def time_to_live(catalog: Catalog) -> int:
    """Return for how many milliseconds a list may be kept: any pending server may add to it."""
    return 0 if catalog.pending else SETTLED_TIME_TO_LIVE


def approximate_tokens(entry: ToolEntry) -> int:
    """Return about how many tokens a definition costs a model, as its length tells."""
    return BY_LENGTH.tokens(entry)


def tokens_of(tool: JsonObject) -> int:
    """Return the same of a definition as it is listed, also of one of our own."""
    return approximate_tokens(_listed(tool))


def tokens_listed(tools: Iterable[JsonObject], catalog: Catalog) -> int:
    """Return how many tokens a list costs a model."""
    entries, tokens = catalog.entries, catalog.scale.tokens
    return sum(tokens(entries.get(ToolName(tool["name"])) or _listed(tool)) for tool in tools)


def tokens_unlisted(catalog: Catalog) -> int:
    """Return how many tokens a list of everything there is would cost a model."""
    return sum(map(catalog.scale.tokens, catalog.entries.values()))


def _listed(tool: JsonObject) -> ToolEntry:
    return ToolEntry(ToolName(tool["name"]), ServerName(""), tool)


@frozen
class Deferral:
    """Whether tools are deferred, for a catalog as it grows; replaced, never changed."""

    mode: ToolSearchMode
    context_window: int
    deferring: bool
    cost: float = 0.0
    """The tokens of deferrable definitions; summed up only where it decides."""
    is_settled: bool = True
    """Whether nothing of that is still to be counted."""

    @classmethod
    def starting(cls, mode: ToolSearchMode, context_window: int) -> "Deferral":
        """Return what holds before any tool is known."""
        return cls(mode, context_window, deferring=mode.always)

    @property
    def threshold(self) -> int:
        """The tokens that deferrable definitions may cost before they are deferred."""
        return self.context_window * self.mode.percent // 100

    @property
    def tokens(self) -> int:
        """The tokens that deferrable definitions cost."""
        return ceil(self.cost)

    @property
    def why(self) -> str:
        """The facts behind the decision."""
        if self.mode.always or self.mode.never:
            return f"`toolSearch: {self.mode}` is configured"
        relation = "have exceeded" if self.deferring else "do not exceed"
        return (
            f"the definitions (about {self.tokens:,} tokens) {relation} {self.mode.percent} % "
            f"of the context window ({self.threshold:,} tokens)"
        )

    def updated(self, catalog: Catalog) -> "Deferral":
        """Return what holds for a newer catalog; once tools are deferred, they stay so."""
        if self.mode.always or self.mode.never:
            return self
        scale, entries = catalog.scale, catalog.entries.values()
        cost = scale.cost(entry for entry in entries if not entry.always_load)
        # Once over, it stays so: going back would change every client's list each time a server
        # comes and goes. But what was a guess until somebody counts is decided again then.
        stays = self.deferring and self.is_settled
        return replace(
            self,
            deferring=stays or cost > self.threshold,
            cost=cost,
            is_settled=stays or not scale.awaits(catalog.known),
        )
