"""Clients that are kept told of changes, each from when it can be told to when it goes."""

from collections.abc import Iterable, Sequence
from functools import partial

import anyio
import mcp_types as types

from aggregator.basics.json import as_object
from aggregator.basics.tasks import has_tasks
from aggregator.config.profile import is_for_others
from aggregator.fleet.fleet import Fleet
from aggregator.names import ToolName
from aggregator.upstream.announcing import Queue, Subject, announce
from aggregator.upstream.caller import (
    Context,
    SessionGuest,
    has_servers_alone,
    notify,
    session_key,
)
from aggregator.upstream.channels import PROMPTS, RESOURCES, TOOLS, Channel, Channels, Tell
from aggregator.upstream.client_memory import ClientMemory
from aggregator.upstream.connected_clients import ConnectedClients
from aggregator.upstream.conversation import Conversation
from aggregator.upstream.lists import Lists
from aggregator.upstream.outlooks import Outlooks
from aggregator.upstream.replica import Replica
from aggregator.upstream.requesters import Requesters
from aggregator.upstream.resources import Resources
from aggregator.upstream.results.kept import KeptResults
from aggregator.upstream.subscriptions import Subscriptions
from aggregator.upstream.task_handles import refuse_undeclared
from aggregator.upstream.visitor import Visitor


class ChangeListeners:
    """Tells each client of what has changed: in its session, or where it listens."""

    def __init__(
        self,
        fleet: Fleet,
        connected: ConnectedClients,
        client_memory: ClientMemory,
        *,
        requesters: Requesters,
        outlooks: Outlooks,
        resources: Resources,
        subscriptions: Subscriptions,
        kept: KeptResults,
        replica: Replica,
    ) -> None:
        self._fleet = fleet
        self._conversations = connected.conversations
        self._askable = connected.askable
        self._client_memory = client_memory
        self._requesters = requesters
        self._outlooks = outlooks
        self._resources = resources
        self._subscriptions = subscriptions
        self._kept = kept
        self._replica = replica
        self._lists = Lists(fleet, outlooks)
        self._queue = Queue()
        self._channels = Channels(self._channel, self._channel_subjects)

    async def run(self) -> None:
        """Tell modern clients of changes."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._subscriptions.run)
            group.start_soon(self._kept.run)
            await self._channels.run(self._fleet.changed.wait)

    async def attend(self, ctx: Context, _params: types.NotificationParams) -> None:
        """Keep a handshake client told of changes; ends with its session."""
        conversation = self._requesters.conversation(ctx)
        conversation.attend()
        session = ctx.session
        subjects = self._subjects(
            conversation,
            tools=session.send_tool_list_changed,
            prompts=session.send_prompt_list_changed,
            resources=session.send_resource_list_changed,
        )
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(conversation.watcher.run, session.send_resource_updated)
                group.start_soon(conversation.notices.run, partial(notify, session))
                with self._askable.entered(SessionGuest(session, conversation), conversation):
                    await announce(self._fleet.changed.wait, subjects, self._queue)
        finally:
            self._part_with(conversation)
            self._client_memory.end(conversation)
            self._conversations.forget(session_key(ctx) or "")

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell a modern client of what it asks to be told of, for as long as it listens."""
        _check_tasks(ctx)
        asked = params.notifications
        uris = asked.resource_subscriptions or []
        conversation = self._requesters.conversation(ctx)
        links, shown = conversation.links, conversation.shown
        channel = self._channels.of(conversation.profile)
        outlook = self._outlooks.of(conversation.profile, can_log_in=False)
        async with self._resources.watching(uris, channel.watcher, outlook, links) as watched:
            # What a server refuses to tell of is not promised.
            promised = asked.model_copy(update={"resource_subscriptions": watched or None})
            if shown.is_known and shown.is_stale(self._lists.tools(conversation)):
                # It changed before there was anybody to tell.
                channel.greet_next()
            return await channel.listen(ctx, params.model_copy(update={"notifications": promised}))

    async def pass_on_roots(self, ctx: Context, _params: types.NotificationParams) -> None:
        """Have servers ask again for the roots of a client that has them to itself."""
        conversation = self._requesters.conversation(ctx)
        await self._fleet.client_processes.tell_roots_changed(conversation.watcher)
        if has_servers_alone(ctx):
            await self._fleet.tell_roots_changed()

    def forget(self, visitor: Visitor) -> None:
        """Remember nothing of a client on a stream that has ended."""
        for conversation in self._conversations:
            if conversation.visitor == visitor:
                self._part_with(conversation)
        self._conversations.forget_visitor(visitor)

    def load(self, session: str, names: Iterable[str]) -> None:
        """Take note of what a session has loaded elsewhere, and that it was told so there."""
        conversation = self._conversations.get(session)
        if conversation is not None and conversation.load(map(ToolName, names)):
            conversation.shown.show(self._lists.tools(conversation))

    async def hear_of(self, profile: str | None, what: object) -> None:
        """Tell who listens here of another list there, or be ready to tell them of ours."""
        if profile is None or profile in self._fleet.now.config.settings.profiles:
            await self._channels.hear(profile, what)

    def _part_with(self, conversation: Conversation) -> None:
        """Hold nothing more for a client that has gone."""
        conversation.leave()
        self._fleet.client_processes.leave(conversation.watcher)
        self._subscriptions.forget(conversation.watcher)
        self._kept.forget(conversation.watcher)

    def _channel(self, profile: str | None) -> Channel:
        post = self._replica.post
        tell = None if post is None else partial(post.changed, profile)
        if post is not None:
            post.listens(profile)
        return Channel(self._requesters.watcher(profile), tell)

    def _channel_subjects(self, profile: str | None, channel: Channel) -> Sequence[Subject]:
        return self._subjects(
            self._requesters.nobody(
                "modern", profile=profile, can_log_in=not is_for_others(profile)
            ),
            tools=channel.telling(TOOLS),
            prompts=channel.telling(PROMPTS),
            resources=channel.telling(RESOURCES),
        )

    def _subjects(
        self, conversation: Conversation, *, tools: Tell, prompts: Tell, resources: Tell
    ) -> tuple[Subject, ...]:
        """Return the lists of which a client is kept told, and how it is told of each."""
        lists = self._lists
        return (
            Subject(lambda: lists.tools(conversation), tools, conversation.shown),
            Subject(lambda: lists.prompts(conversation), prompts),
            Subject(lambda: lists.resources(conversation), resources),
        )


def _check_tasks(ctx: Context) -> None:
    """See to it that only who has declared tasks asks to be told of some.

    Nobody is told: a client asks about its tasks, and hears that it has to from what is promised.

    Raises:
        MCPError: It has not.
    """
    params = as_object(ctx.params)
    if "taskIds" in as_object(params.get("notifications")):
        meta = as_object(params.get("_meta"))
        if not has_tasks(as_object(meta.get(types.CLIENT_CAPABILITIES_META_KEY))):
            refuse_undeclared()
