"""The tools behind an aggregator, for programs that make the requests to a model themselves."""

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, Unpack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from aggregator.host import options
from aggregator.host.connection import (
    Connection,
    Source,
    child,
    connected,
    connected_to,
    token_for,
)
from aggregator.host.conversation import AsyncConversation, Conversation
from aggregator.host.messages.staging import MessagesRequest, MessagesStaging
from aggregator.host.options import Choices
from aggregator.host.responses.staging import ResponsesRequest, ResponsesStaging
from aggregator.host.talk import Talk

CLOSED = "a toolbox is open inside of its `with` block"


class AsyncToolbox:
    """The tools behind an aggregator, for authors who await."""

    def __init__(
        self,
        config: str | Path | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        client: Source | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Say where the tools are.

        Args:
            config: A `servers.yaml`, for an aggregator that is started and ends with the box.
            url: Where an aggregator serves already.
            token: What to show there; by default what `AGGREGATOR_TOKEN` says, and on this machine
                the token that the aggregator made for itself.
            client: A client of the SDK for anything else, not open yet; the box opens it.
            environment: Variables in the place of those that are set.
        """
        self._variables = dict(os.environ if environment is None else environment)
        self._reach = _reach(config, url, token, client, self._variables)
        self._connection: Connection | None = client if isinstance(client, Connection) else None

    async def __aenter__(self) -> Self:
        self._connection = await self._reach.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._connection = None
        return await self._reach.__aexit__(kind, error, trace)

    def anthropic(
        self, model: str, **choices: Unpack[Choices]
    ) -> AsyncConversation[MessagesRequest]:
        """Begin a conversation over the Anthropic Messages API."""
        talk = messages_talk(model, choices, self._variables)
        return AsyncConversation(self._open(), talk)

    def openai(self, model: str, **choices: Unpack[Choices]) -> AsyncConversation[ResponsesRequest]:
        """Begin a conversation over the OpenAI Responses API."""
        talk = responses_talk(model, choices, self._variables)
        return AsyncConversation(self._open(), talk)

    def fork(self) -> "AsyncToolbox":
        """Return a box for a sub-agent: the same tools, and nothing found in them yet."""
        return AsyncToolbox(client=self._open(), environment=self._variables)

    def _open(self) -> Connection:
        if self._connection is None:
            raise RuntimeError(CLOSED)
        return self._connection


class Lent(NamedTuple):
    """What a box has while it is open."""

    connection: Connection
    portal: BlockingPortal


class Toolbox:
    """The tools behind an aggregator."""

    def __init__(
        self,
        config: str | Path | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        client: Source | Lent | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Say where the tools are.

        Args:
            config: A `servers.yaml`, for an aggregator that is started and ends with the box.
            url: Where an aggregator serves already.
            token: What to show there; by default what `AGGREGATOR_TOKEN` says, and on this machine
                the token that the aggregator made for itself.
            client: A client of the SDK for anything else, not open yet; the box opens it.
            environment: Variables in the place of those that are set.
        """
        self._variables = dict(os.environ if environment is None else environment)
        self._lent = client if isinstance(client, Lent) else None
        source = client.connection if isinstance(client, Lent) else client
        self._reach = _reach(config, url, token, source, self._variables)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._lent is None:
            with ExitStack() as stack:
                portal = stack.enter_context(start_blocking_portal())
                reach = portal.wrap_async_context_manager(self._reach)
                self._lent = Lent(stack.enter_context(reach), portal)
                self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._lent = None
        return self._stack.__exit__(kind, error, trace)

    def anthropic(self, model: str, **choices: Unpack[Choices]) -> Conversation[MessagesRequest]:
        """Begin a conversation over the Anthropic Messages API."""
        talk = messages_talk(model, choices, self._variables)
        return Conversation(*self._open(), talk)

    def openai(self, model: str, **choices: Unpack[Choices]) -> Conversation[ResponsesRequest]:
        """Begin a conversation over the OpenAI Responses API."""
        talk = responses_talk(model, choices, self._variables)
        return Conversation(*self._open(), talk)

    def fork(self) -> "Toolbox":
        """Return a box for a sub-agent: the same tools, and nothing found in them yet."""
        return Toolbox(client=self._open(), environment=self._variables)

    def _open(self) -> Lent:
        if self._lent is None:
            raise RuntimeError(CLOSED)
        return self._lent


def messages_talk(
    model: str, choices: Choices, environment: Mapping[str, str]
) -> Talk[MessagesRequest]:
    """Begin a conversation over the Anthropic Messages API."""
    chosen = options.for_messages(model, choices, environment)
    return Talk(chosen, MessagesStaging(chosen))


def responses_talk(
    model: str, choices: Choices, environment: Mapping[str, str]
) -> Talk[ResponsesRequest]:
    """Begin a conversation over the OpenAI Responses API."""
    chosen = options.for_responses(model, choices, environment)
    return Talk(chosen, ResponsesStaging(chosen))


def _reach(
    config: str | Path | None,
    url: str | None,
    token: str | None,
    client: Source | None,
    environment: Mapping[str, str],
) -> AbstractAsyncContextManager[Connection]:
    """Return the way to the tools.

    Raises:
        ValueError: There is none, or more than one.
    """
    if sum(each is not None for each in (config, url, client)) != 1:
        raise ValueError("a toolbox has one of `config`, `url` and `client`")
    if url is not None:
        return connected_to(url, token or token_for(url, environment))
    if isinstance(client, Connection):
        return nullcontext(client)
    return connected(client or child(config or "", environment))
