"""What `servers.yaml` says for all servers and clients, as a value."""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from aggregator.basics.frozen import frozen
from aggregator.clients import SurfaceChoice
from aggregator.config.audit import Audit
from aggregator.config.http import Http
from aggregator.config.kinds import FOUND, FoundKind
from aggregator.config.mode import ToolSearchMode
from aggregator.config.profile import Profile, empty, plain
from aggregator.config.tokens import TokenCounter, Tokenizer
from aggregator.names import RESERVED, MetaTools

DriftChoice = Literal["warn", "block"]

CONTEXT_WINDOW = 200_000
"""Tokens a model can hold."""
DEFAULT_RESULTS = 8
"""Tools a search returns unless it asks for another number."""
DEFINED_RESULTS = 5
"""Those of them that are defined; the others are told on one line each."""
MAX_RESULTS = 100
"""Tools that the file, or a search, may ask for."""
MAX_RESULT_CHARS = 8_000
"""Characters the answer to a search may have, unless the file or the client says otherwise."""
LEAST_RESULT_TOKENS, MOST_RESULT_TOKENS = 1_000, 1_000_000
"""What the file may let a result cost."""
MAX_LOADED = 40
"""Tools that searches may add to one client's list."""
RELIST_WAIT = 0.4
"""Seconds to wait for a client to list again before its search is answered."""


@frozen
class Settings:
    """What holds for all servers and clients."""

    tool_search: ToolSearchMode = field(default_factory=ToolSearchMode)
    context_window: int = CONTEXT_WINDOW
    """Tokens a model can hold; `auto` measures against it."""
    tokens: Tokenizer | TokenCounter | None = None
    """Who counts what definitions cost, if anybody does."""
    surface: SurfaceChoice = "auto"
    max_results: int = DEFAULT_RESULTS
    max_result_chars: int = MAX_RESULT_CHARS
    max_result_tokens: int | None = None
    """What a result may cost a model before it is shortened; 0 for all there is.

    If nothing is said, it is as is known of the client.
    """
    max_loaded: int = MAX_LOADED
    relist_wait: float = RELIST_WAIT
    state: bool = True
    """Whether what was learned is kept between runs."""
    stats: bool = True
    """Whether what is used and found is counted."""
    audit: Audit | None = None
    """Where each call is written down, if it is."""
    recall: bool = True
    """Whether what servers offered in another run counts before they have been asked again."""
    watch: bool = True
    """Whether changes of the file are applied while running."""
    semantic: bool = True
    """Whether searches go by meaning too, where the extra is installed."""
    drift: DriftChoice = "warn"
    """What is done with tools that are not as they were approved."""
    skills: tuple[Path, ...] = ()
    """Directories that are skills, or hold some."""
    find: tuple[FoundKind, ...] = FOUND
    """What a search finds that does not say which kind it wants."""
    clients: Mapping[str, SurfaceChoice] = field(default_factory=dict[str, SurfaceChoice])
    """The surface of each client named here."""
    result_limits: Mapping[str, int] = field(default_factory=dict[str, int])
    """What a result may cost the model of each client named here, as above."""
    names: MetaTools = RESERVED
    """What our own tools are called."""
    profiles: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    """What kinds of clients see, by the names that they are chosen by."""
    http: Http = field(default_factory=Http)
    """How clients over HTTP are treated."""

    def view(self, name: str) -> Profile:
        """Return what a name stands for: one that the file does not have shows nothing."""
        own = plain(name)
        found = self.profiles.get(own) or self.http.views.get(own)
        if name == own:
            return found or empty(name)
        return replace(found or (empty(own) if own else Profile("")), personal=False)

    @property
    def views(self) -> Collection[str]:
        """The names of all that kinds of clients see, if it is not everything."""
        return (*self.profiles, *self.http.views)

    def profile_for(self, client: str) -> str | None:
        """Return the profile of clients that give themselves this name, if they have one."""
        named = (each.name for each in self.profiles.values() if each.is_for(client))
        return next(named, None)
