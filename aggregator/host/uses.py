"""What a model asks for."""

import json
from typing import Literal, NamedTuple

from aggregator.basics.json import JsonObject, is_object

Kind = Literal["call", "search"]
SEARCH: Kind = "search"


class Use(NamedTuple):
    """One tool that a model wants to use."""

    id: str
    name: str
    arguments: JsonObject
    kind: Kind = "call"
    """`search` where the API itself says that it is one."""
    problem: str = ""
    """Why it cannot be understood, if so."""


def read_use(identity: str, name: str, sent: object, kind: Kind = "call") -> Use:
    """Read what a model asks for; some APIs give the arguments as text."""
    try:
        arguments: object = json.loads(sent) if isinstance(sent, str) else sent
    except ValueError as error:
        return Use(identity, name, {}, kind, f"The arguments are not JSON: {error}")
    if not is_object(arguments):
        return Use(identity, name, {}, kind, "The arguments must be an object.")
    return Use(identity, name, arguments, kind)
