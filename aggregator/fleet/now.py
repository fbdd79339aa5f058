"""What is known now, as one value: replaced whole at every change, read once by each request."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from aggregator.catalog import Catalog, Ready, ServerState
from aggregator.config import Config
from aggregator.exposure import Deferral
from aggregator.fleet.routes import Routes
from aggregator.names import Ambiguous, Lookup, Register, ServerName, ToolName


@dataclass(frozen=True, slots=True)
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

    def __repr__(self) -> str:
        return f"<Now {self.catalog!r}{'' if self.problem is None else f', {self.problem}'}>"

    @classmethod
    def starting(cls, config: Config, since: float) -> "Now":
        """Return what is known before any server has been heard of."""
        catalog = Catalog.starting(config.enabled, since)
        return cls(config, catalog, Lookup(), Routes(catalog), _deferral(config, catalog))

    def with_state(self, server: ServerName, state: ServerState) -> "Now":
        """Return what is known once a server has a new state."""
        catalog = self.catalog.updated(server, state)
        return self._with_catalog(catalog, self.deferral.updated(catalog))

    def with_config(self, config: Config, catalog: Catalog) -> "Now":
        """Return what is known once another configuration is in use."""
        changed = self._with_catalog(catalog, _deferral(config, catalog))
        return replace(changed, config=config, problem=None)

    def with_problem(self, problem: str) -> "Now":
        """Return what is known once the file has been found to be unusable."""
        return replace(self, problem=problem)

    @property
    def descriptions(self) -> Mapping[ServerName, str]:
        """What the configuration says of each server."""
        return {name: server.description for name, server in self.config.enabled.items()}

    def find(self, text: str) -> ToolName | Ambiguous | None:
        """Find the tool a text means."""
        # What is written as it is listed needs no other way, which has to be found out first.
        name = ToolName(text)
        return name if name in self.catalog.entries else self.lookup.find(text)

    def _with_catalog(self, catalog: Catalog, deferral: Deferral) -> "Now":
        return replace(
            self,
            catalog=catalog,
            lookup=_follow(self.lookup, self.catalog, catalog),
            routes=Routes(catalog),
            deferral=deferral,
        )


def _deferral(config: Config, catalog: Catalog) -> Deferral:
    settings = config.settings
    return Deferral.starting(settings.tool_search, settings.context_window).updated(catalog)


def _follow(lookup: Lookup, before: Catalog, after: Catalog) -> Lookup:
    """Return the lookup of a newer catalog; servers with the same tools keep their registers."""
    known = {register.server: register for register in lookup.registers}
    registers: list[Register] = []
    for name, state in after.servers.items():
        if not isinstance(state, Ready):
            continue
        earlier = before.servers.get(name)
        is_same = isinstance(earlier, Ready) and earlier.entries is state.entries
        registers.append(known[name] if is_same else _register(name, state))
    return Lookup(tuple(registers))


def _register(server: ServerName, state: Ready) -> Register:
    return Register(server, tuple((entry.name, entry.own_name) for entry in state.entries))
