"""Whether two clients may share servers: only if these would be the same in every respect.

What is compared is the configuration as it is resolved for each of them, with the values of all
variables and with what servers would be given of either environment. Left out is only what differs
from window to window and says nothing about a person.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

from aggregator.basics.json import is_object
from aggregator.config import Config, ServerConfig

NAMED = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "XDG_STATE_HOME")
"""Variables that count whatever the file says."""
INCIDENTAL = frozenset(
    (
        "TERM",
        "COLORTERM",
        "COLUMNS",
        "LINES",
        "TERM_PROGRAM",
        "TERM_PROGRAM_VERSION",
        "TERM_SESSION_ID",
        "WINDOWID",
        "SHLVL",
        "PWD",
        "OLDPWD",
        "_",
        "XDG_SESSION_ID",
        "XDG_ACTIVATION_TOKEN",
        "XDG_VTNR",
        "DESKTOP_STARTUP_ID",
        "GIO_LAUNCHED_DESKTOP_FILE",
        "GIO_LAUNCHED_DESKTOP_FILE_PID",
    )
)
"""Variables that are those of a window, and not of a person."""


class Resolved:
    """A file as one client's environment makes it."""

    def __init__(self, config: Config, variables: Mapping[str, str]) -> None:
        self.config = config
        self.variables = variables
        self.file = os.path.realpath(config.path)
        self.named = {name: variables.get(name) for name in NAMED}
        self.servers = {name: _essential(each) for name, each in config.servers.items()}

    def is_like(self, other: "Resolved") -> bool:
        """Say whether the two can have the same servers."""
        return next(self.differences(other), None) is None

    def is_of_same_file(self, other: "Resolved") -> bool:
        """Say whether a person would expect the two to share."""
        return self.file == other.file

    def differences(self, other: "Resolved") -> Iterator[str]:
        """Say in what the two differ, without any value."""
        if self.file != other.file:
            yield "another file"
            return
        yield from (name for name in NAMED if self.named[name] != other.named[name])
        if self.config.settings != other.config.settings:
            yield "settings"
        if list(self.servers) != list(other.servers):
            yield "other servers"
        for name in self.servers.keys() & other.servers.keys():
            one, two = self.servers[name], other.servers[name]
            if one != two:
                yield from (each for each in _unlike(one, two) if each not in NAMED)


def _essential(server: ServerConfig) -> ServerConfig:
    kept = {name: value for name, value in server.inherited.items() if name not in INCIDENTAL}
    return replace(server, inherited=kept)


def _unlike(one: ServerConfig, two: ServerConfig) -> Iterator[str]:
    """Name the variables that two servers are given with different values, or what else it is."""
    for field in fields(ServerConfig):
        here, there = getattr(one, field.name), getattr(two, field.name)
        if not field.compare or here == there:
            continue
        if is_object(here) and is_object(there):
            yield from (key for key in {**here, **there} if here.get(key) != there.get(key))
        else:
            yield f"`{field.name}` of `{one.name}`"
