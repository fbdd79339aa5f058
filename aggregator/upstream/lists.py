"""The lists that clients are kept told of, worked out once for all of them at each change.

Everybody who is connected looks at them after every change of the catalog. What they then compare
are editions, of which there is a new one only if the list itself is another.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from aggregator.basics.json import JsonObject
from aggregator.exposure import Exposure
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.fleet.routes import Routes
from aggregator.names import ToolName
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.listing import exposure_for, tools_for
from aggregator.upstream.outlooks import Outlooks

_Key = tuple[str | None, Exposure, bool, tuple[ToolName, ...]]


class Lists:
    """What clients would be given now."""

    def __init__(self, fleet: Fleet, outlooks: Outlooks | None = None) -> None:
        self._fleet = fleet
        self._outlooks = outlooks or Outlooks(fleet.profile_views, invites=False)
        self._now: Now | None = None
        self._tools = dict[_Key, Sequence[JsonObject]]()
        self._prompts = defaultdict[str | None, Editions](
            lambda: Editions(lambda routes: routes.shown_prompts)
        )
        self._resources = defaultdict[str | None, Editions](lambda: Editions(_all_resources))

    def tools(self, conversation: Conversation) -> Sequence[JsonObject]:
        """Return the tools that one client would be given, one list for each surface."""
        now = self._fleet.now
        if now is not self._now:
            self._now = now
            self._tools.clear()
        profile, can_log_in = conversation.profile, conversation.can_log_in
        seen = self._outlooks.of(profile, can_log_in=can_log_in)(now)
        exposure = exposure_for(seen, conversation)
        loaded = () if exposure.surface in ("full", "relay") else conversation.loaded
        key = profile, exposure, can_log_in, loaded
        if key not in self._tools:
            self._tools[key] = tools_for(seen, conversation)
        return self._tools[key]

    def prompts(self, conversation: Conversation) -> "Edition":
        """Return the edition of the prompts that one client sees."""
        return self._prompts[conversation.profile].of(self._routes(conversation))

    def resources(self, conversation: Conversation) -> "Edition":
        """Return the edition of the resources and their templates that one client sees."""
        return self._resources[conversation.profile].of(self._routes(conversation))

    def _routes(self, conversation: Conversation) -> Routes:
        return self._fleet.profile_views.seen(conversation.profile, self._fleet.now).routes


def _all_resources(routes: Routes) -> object:
    return routes.local, routes.shown_resources, routes.shown_templates


class Edition:
    """One form of a list, the same only as itself."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class Editions:
    """A list that everybody is given alike.

    The edition before the latest is known too, so that a change which is taken back is none.
    """

    def __init__(self, read: Callable[[Routes], object]) -> None:
        self._read = read
        self._routes: Routes | None = None
        self._known: tuple[Edition, ...] = ()

    def of(self, routes: Routes) -> Edition:
        """Return the edition of the list to which these are the routes."""
        if routes is not self._routes:
            value = self._read(routes)
            latest = next((each for each in self._known if each.value == value), Edition(value))
            self._known = (latest, *(each for each in self._known if each is not latest))[:2]
            self._routes = routes
        return self._known[0]
