"""What a client says when it comes: what it wants, from where, and with what environment."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from aggregator.entry.shim import SEPARATOR

WORDS = 5
"""Words before the variables."""


class HelloError(Exception):
    """It is no hello of this version's."""


class Hello(NamedTuple):
    """One client, as it introduces itself."""

    kind: str
    details: str
    """What else there is to say of what it wants."""
    identity: str
    config: str
    """The file that it means."""
    directory: str
    variables: Mapping[str, str]
    profile: str = ""
    """What it is to see, if that is said."""


def read_hello(message: bytes) -> Hello:
    """Return what a message says.

    Raises:
        HelloError: It is none.
    """
    words = [os.fsdecode(word) for word in message.split(SEPARATOR)]
    if len(words) < WORDS:
        raise HelloError("there are words missing")
    kind, identity, config, directory, profile = words[:WORDS]
    kind, _, details = kind.partition(" ")
    pairs = (word.partition("=") for word in words[WORDS:])
    variables = {name: value for name, _, value in pairs if name}
    return Hello(kind, details, identity, config, directory, variables, profile)
