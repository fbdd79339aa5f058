"""Who asks, and what is known of them: a request of the protocol as one of ours."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.basics.json import EACH, JsonObject, weight
from aggregator.config.profile import for_others
from aggregator.fleet.fleet import Fleet
from aggregator.names import ServerName
from aggregator.upstream.caller import (
    Context,
    ContextCaller,
    chosen_profile,
    client_name,
    declaration,
    era_of,
    has_servers_alone,
    home_of,
    introduced,
    is_near,
    loaded_elsewhere,
    session_key,
    visitor_of,
)
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.conversation import Conversation, share_nothing
from aggregator.upstream.identity import identity_of
from aggregator.upstream.links import Links
from aggregator.upstream.logging_in import LoggingIn
from aggregator.upstream.outlooks import Outlooks
from aggregator.upstream.replica import Replica
from aggregator.upstream.request import Request
from aggregator.upstream.resident import ClientResident
from aggregator.upstream.watches import Watcher

INTRODUCING = ("initialize", "server/discover")
"""What is answered with instructions."""
MAX_INTRODUCTION = 256 * 1024
"""Bytes that a client may say of itself in the handshake, which its session keeps: an icon may be
among them."""
MAX_TOLD = 64
"""Characters that are shown of what a client calls something."""


class Requesters:
    """The clients that are here, and those of which nothing is remembered."""

    def __init__(
        self,
        fleet: Fleet,
        connected: ConnectedClients,
        client_memory: ClientMemory,
        logging_in: LoggingIn,
        outlooks: Outlooks,
        *,
        replica: Replica,
    ) -> None:
        self._fleet = fleet
        self._connected = connected
        self._client_memory = client_memory
        self._logging_in = logging_in
        self._outlooks = outlooks
        self._replica = replica
        self._claim = partial(replica.claim, home=None)
        self._strangers_links = defaultdict[str | None, Links](lambda: Links(is_shared=True))
        self._given: dict[types.RequestId, Sequence[JsonObject]] = {}

    def acknowledge(self, given: Mapping[types.RequestId, Sequence[JsonObject]]) -> None:
        """Take note of the tools that a client was given before us, by its requests for them."""
        self._given.update(given)

    def meet(self, ctx: Context) -> None:
        """Take note of what a new client can be asked.

        Raises:
            MCPError: It says more of itself than is kept.
        """
        if ctx.method in INTRODUCING:
            if ctx.method == "initialize":
                _check_length(ctx.params or {})
            capabilities = declaration(ctx)
            self._fleet.meet(capabilities)
            if ctx.method == "server/discover" and has_servers_alone(ctx):
                self._connected.askable.introduce(capabilities, self._sees(self._profile_of(ctx)))

    def request(self, ctx: Context) -> Request:
        """Say who asks, and what is known now."""
        conversation = self.conversation(ctx)
        caller = ContextCaller(ctx, conversation)
        can_log_in = self._logging_in.is_for(caller.capabilities, caller.identity, caller.is_near)
        outlook = self._outlooks.of(conversation.profile, can_log_in=can_log_in)
        given = None if ctx.request_id is None else self._given.pop(ctx.request_id, None)
        now = outlook(self._fleet.now)
        resident = ClientResident(caller, conversation, self._connected)
        return Request(now, conversation, caller, ctx.params or {}, resident, outlook, given)

    def conversation(self, ctx: Context) -> Conversation:
        """Find what is remembered of the client that asks, or begin to remember."""
        key = session_key(ctx)
        if key is None:
            return self.nobody(era_of(ctx), client_name(ctx), profile=self._profile_of(ctx))
        return self._connected.conversations.of(key, lambda: self._begin(ctx))

    def nobody(
        self,
        era: Era,
        client: str = "",
        *,
        profile: str | None = None,
        can_log_in: bool = False,
    ) -> Conversation:
        """Return a client of which nothing will be remembered."""
        return Conversation(
            era,
            client,
            has_memory=False,
            profile=profile,
            can_log_in=can_log_in,
            claim=self._claim,
            keeps_list=self._replica.keeps_lists,
            links=self._strangers_links[profile],
        )

    def profile(self, ctx: Context, client: str) -> str | None:
        """Return what a client sees: as chosen where it came in, or else by its name.

        Who does not run us sees no server that is used in the name of whoever does.
        """
        chosen = chosen_profile(ctx)
        if chosen is None:
            chosen = self._fleet.now.config.settings.profile_for(client)
        return chosen if identity_of(ctx.request).is_operator else for_others(chosen)

    def watcher(self, profile: str | None) -> Watcher:
        """Return who is told of changes that clients of a profile see."""
        reads = self._outlooks.reads
        return Watcher(lambda server: reads(profile, server, self._fleet.now), profile)

    def _profile_of(self, ctx: Context) -> str | None:
        return self.profile(ctx, client_name(ctx))

    def _sees(self, profile: str | None) -> Callable[[ServerName], bool]:
        """Return what says whether a server exists for clients of a profile."""
        return lambda server: self._outlooks.shows(profile, server, self._fleet.now)

    def _remembered(self, ctx: Context) -> Sequence[str]:
        """Return what a client had loaded before we knew it."""
        visitor = visitor_of(ctx)
        if visitor is None:
            return loaded_elsewhere(ctx)
        return self._client_memory.loaded(client_name(ctx), visitor)

    def _sharing(self, ctx: Context) -> Callable[[Sequence[str]], None]:
        """Return what tells other replicas what a session has loaded, if there are any."""
        post, key = self._replica.post, session_key(ctx)
        return share_nothing if post is None or key is None else partial(post.loaded, key)

    def _begin(self, ctx: Context) -> Conversation:
        """Begin to remember a client, with what earlier sessions of it have left behind."""
        client, visitor, profile = client_name(ctx), visitor_of(ctx), self._profile_of(ctx)
        # What its searches go by is read from here on.
        self._fleet.profile_views.of(profile)
        now = self._fleet.profile_views.seen(profile, self._fleet.now)
        if has_servers_alone(ctx) and era_of(ctx) == "modern":
            self._connected.askable.introduce(introduced(ctx), self._sees(profile))
        return Conversation(
            era_of(ctx),
            client,
            max_loaded=now.config.settings.max_loaded,
            is_alone=visitor is not None,
            visitor=visitor,
            profile=profile,
            sees=self._sees(profile),
            claim=partial(self._replica.claim, home=home_of(ctx)),
            keeps_list=self._replica.keeps_lists,
            watcher=self.watcher(profile),
            known_relist=self._client_memory.relists(client),
            capabilities=introduced(ctx),
            can_log_in=self._logging_in.is_for(
                introduced(ctx), identity_of(ctx.request), lambda: is_near(ctx.request)
            ),
            remembered=self._remembered(ctx),
            share=self._sharing(ctx),
        )


def _check_length(said: JsonObject) -> None:
    """See to it that what a client says of itself can be kept for as long as it is here.

    Raises:
        MCPError: It is too long.
    """
    if weight(said, MAX_INTRODUCTION) <= MAX_INTRODUCTION:
        return
    longest = max(said, key=lambda name: weight({name: said[name]}, MAX_INTRODUCTION))
    raise MCPError(
        types.INVALID_PARAMS,
        f"`{longest[:MAX_TOLD]}` is too long: what a client says of itself in `initialize` may "
        f"take {MAX_INTRODUCTION // 1024} KiB in all, where each name and value counts as at "
        f"least {EACH} bytes",
    )
