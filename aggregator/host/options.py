"""What an agent's author may choose, and what follows where nothing is chosen."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

from aggregator.basics.frozen import frozen
from aggregator.host.deferral import ALWAYS, USUAL_WINDOW, Mode, read_mode
from aggregator.host.gates import (
    MESSAGES_HOSTS,
    RESPONSES_HOSTS,
    UNABLE,
    Carry,
    carry_for_messages,
    carry_for_responses,
)

Count = Callable[[list[Any]], int | Awaitable[int]]
"""Counts the tokens of a request with some tools, as the vendor's API does."""

Announce = Literal["names", "nothing"]
"""Whether a model is told the names of the tools that it could search for."""


class Choices(TypedDict, total=False):
    """What may be chosen; everything has a default."""

    carry: Carry | None
    """How found tools reach the model; chosen by its name and the way to it if left out."""
    base_url: str | None
    """Where requests go; the vendor's variable for it counts too."""
    unable: Sequence[str]
    """Parts of the names of models that cannot use references."""
    hosts: Sequence[str]
    """Hosts that pass on what their vendor's API accepts."""
    defer: bool | str
    """`True`, `False`, `"auto"` or `"auto:N"`: when definitions take N percent of the window."""
    window: int
    """Tokens of the model's context window."""
    count: Count | None
    """Counts the tokens of a request with some tools, for `auto`."""
    keep: Collection[str]
    """Tools that are loaded from the first turn on."""
    announce: Announce
    """Whether the names of all tools are told, and what comes and goes."""
    boundary: bool
    """Whether a turn that consists of references ends with a text."""
    move_siblings: bool
    """Whether texts beside references move on to the next results; costs the prompt's cache."""


@frozen
class Options:
    """How a conversation is carried."""

    carry: Carry
    mode: Mode = ALWAYS
    window: int = USUAL_WINDOW
    count: Count | None = None
    keep: Collection[str] = ()
    announce: Announce = "names"
    boundary: bool = False
    move_siblings: bool = False


def for_messages(model: str, choices: Choices, environment: Mapping[str, str]) -> Options:
    """Return how a conversation over the Anthropic Messages API is carried."""
    base_url = choices.get("base_url") or environment.get("ANTHROPIC_BASE_URL")
    unable, hosts = choices.get("unable", UNABLE), choices.get("hosts", MESSAGES_HOSTS)
    usual = carry_for_messages(model, base_url, unable=unable, hosts=hosts)
    return _options(choices.get("carry") or usual, choices)


def for_responses(model: str, choices: Choices, environment: Mapping[str, str]) -> Options:
    """Return how a conversation over the OpenAI Responses API is carried.

    Raises:
        ValueError: It is to be carried by references, which this API does not have.
    """
    base_url = choices.get("base_url") or environment.get("OPENAI_BASE_URL")
    usual = carry_for_responses(model, base_url, hosts=choices.get("hosts", RESPONSES_HOSTS))
    carry = choices.get("carry") or usual
    if carry == "reference":
        raise ValueError("the Responses API has no references: use carry='inline'")
    return _options(carry, choices)


def _options(carry: Carry, choices: Choices) -> Options:
    return Options(
        carry,
        mode=read_mode(choices.get("defer", True)),
        window=choices.get("window", USUAL_WINDOW),
        count=choices.get("count"),
        keep=choices.get("keep", ()),
        announce=choices.get("announce", "names"),
        boundary=choices.get("boundary", False),
        move_siblings=choices.get("move_siblings", False),
    )
