"""Who asks, and what is known of them: a request of the protocol as one of ours."""

from collections.abc import Mapping, Sequence

import mcp_types as types

from aggregator.eras import Era
from aggregator.fleet.fleet import Fleet
from aggregator.json import JsonObject
from aggregator.upstream.audience import Audience
from aggregator.upstream.caller import (
    Context,
    ContextCaller,
    client_name,
    declaration,
    era_of,
    has_servers_alone,
    introduced,
    is_near,
    session_key,
    visitor_of,
)
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.links import Links
from aggregator.upstream.logging_in import LoggingIn
from aggregator.upstream.recollection import Recollection
from aggregator.upstream.request import Request
from aggregator.upstream.resident import ClientResident

INTRODUCING = ("initialize", "server/discover")
"""What is answered with instructions."""


class Guests:
    """The clients that are here, and those of which nothing is remembered."""

    def __init__(
        self,
        fleet: Fleet,
        audience: Audience,
        recollection: Recollection,
        logging_in: LoggingIn,
    ) -> None:
        self._fleet = fleet
        self._audience = audience
        self._recollection = recollection
        self._logging_in = logging_in
        self._strangers_links = Links(is_shared=True)
        self._given: dict[types.RequestId, Sequence[JsonObject]] = {}

    def acknowledge(self, given: Mapping[types.RequestId, Sequence[JsonObject]]) -> None:
        """Take note of the tools that a client was given before us, by its requests for them."""
        self._given.update(given)

    def meet(self, ctx: Context) -> None:
        """Take note of what a new client can be asked."""
        if ctx.method in INTRODUCING:
            capabilities = declaration(ctx)
            self._fleet.meet(capabilities)
            if ctx.method == "server/discover" and has_servers_alone(ctx):
                self._audience.lobby.introduce(capabilities)

    def request(self, ctx: Context) -> Request:
        """Say who asks, and what is known now."""
        conversation = self.conversation(ctx)
        caller = ContextCaller(ctx, conversation)
        outlook = self._logging_in.outlook(caller)
        given = None if ctx.request_id is None else self._given.pop(ctx.request_id, None)
        now = outlook(self._fleet.now)
        resident = ClientResident(caller, conversation, self._audience)
        return Request(now, conversation, caller, ctx.params or {}, resident, outlook, given)

    def conversation(self, ctx: Context) -> Conversation:
        """Find what is remembered of the client that asks, or begin to remember."""
        key = session_key(ctx)
        if key is None:
            return self.stranger(era_of(ctx), client_name(ctx))
        return self._audience.conversations.of(key, lambda: self._begin(ctx))

    def stranger(self, era: Era, client: str = "", *, can_log_in: bool = False) -> Conversation:
        """Return a client of which nothing will be remembered."""
        links = self._strangers_links
        return Conversation(era, client, has_memory=False, can_log_in=can_log_in, links=links)

    def _begin(self, ctx: Context) -> Conversation:
        """Begin to remember a client, with what earlier sessions of it have left behind."""
        client, visitor = client_name(ctx), visitor_of(ctx)
        if has_servers_alone(ctx) and era_of(ctx) == "modern":
            self._audience.lobby.introduce(introduced(ctx))
        return Conversation(
            era_of(ctx),
            client,
            max_loaded=self._fleet.now.config.settings.max_loaded,
            is_alone=visitor is not None,
            visitor=visitor,
            known_relist=self._recollection.relists(client),
            capabilities=introduced(ctx),
            can_log_in=self._logging_in.is_for(introduced(ctx), is_near=is_near(ctx.request)),
            remembered=() if visitor is None else self._recollection.loaded(client, visitor),
        )
