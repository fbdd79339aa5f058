"""Someone who edits `servers.yaml` at random, in all the ways that people and editors have."""

import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio.abc

from tests.soak.client import Json, faulty

FEWEST, MOST = 5, 9
"""Servers that a file names."""

SOUND = tuple(f"s{number}" for number in range(MOST))
BROKEN = "broken"
"""A server that ends as soon as it is started."""
NAMES = (*SOUND, BROKEN)

TOOLS = ("echo", "wait", "release", "environment", "fault")
"""What each server offers, unless the file says otherwise."""

Servers = dict[str, Json]
Change = Callable[[Random, Servers], Servers]
Damage = Callable[[Random, str], str | None]


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: the good file it leaves in force, whether it is one itself, and how it is done."""

    servers: Servers
    is_good: bool
    do: Callable[[anyio.abc.Process], None]


class Author:
    """Writes the file, and knows what it says."""

    def __init__(self, path: Path, random: Random) -> None:
        self.random = random
        self.servers: Servers = {name: _server(name) for name in SOUND[:FEWEST]}
        """What the last good file says."""
        self.steady: set[str] = set(self.servers)
        """Servers that can be called: the file names them, and no edit of them is under way."""
        self.editions: dict[str, int] = dict.fromkeys(NAMES, 0)
        """How often each server has been changed."""
        self._path = path
        self._is_good = True
        self._written = 0
        self._content: str | None = None
        self._put(self._text(self.servers))

    def edit(self) -> Edit:
        """Think of an edit."""
        kind = self.random.choices((self._change, self._damage, self._hang_up), (7, 3, 1))[0]
        return kind()

    def begin(self, edit: Edit) -> None:
        """Leave alone whom an edit concerns, until it is applied."""
        changed = {name for name in NAMES if edit.servers.get(name) != self.servers.get(name)}
        for name in changed:
            self.editions[name] += 1
        self.steady -= changed

    def end(self, edit: Edit) -> None:
        """Take an edit for applied."""
        self.servers, self._is_good = edit.servers, edit.is_good
        self.steady = set(SOUND).intersection(self.servers)

    def tools(self) -> dict[str, bool]:
        """Return the tools that the last good file makes available, and which are always loaded."""
        return {
            f"{name}__{tool}": tool in server["alwaysLoad"]
            for name, server in self.servers.items()
            for tool in _offered(name, server)
            if tool not in server["tools"]["deny"]
        }

    def _change(self) -> Edit:
        servers = self.servers
        for change in self.random.choices(CHANGES, k=self.random.randint(1, 2)):
            servers = change(self.random, servers)
        text = self._text(servers)
        return Edit(servers, is_good=True, do=lambda _process: self._put(text))

    def _damage(self) -> Edit:
        damages = [each(self.random, self._text(self.servers)) for each in DAMAGES]
        # To empty an empty file is no edit.
        text = self.random.choice([each for each in damages if each != self._content])
        return Edit(self.servers, is_good=False, do=lambda _process: self._put(text))

    def _hang_up(self) -> Edit:
        """Change nothing, but have the file read again."""
        return Edit(
            self.servers, self._is_good, do=lambda process: process.send_signal(signal.SIGHUP)
        )

    def _text(self, servers: Servers) -> str:
        self._written += 1
        lines = [f"  {name}: {json.dumps(server)}" for name, server in servers.items()]
        return "\n".join([f"# edition {self._written}", "servers:", *lines, ""])

    def _put(self, text: str | None) -> None:
        self._content = text
        if text is None:
            self._path.unlink(missing_ok=True)
        else:
            self.random.choice(WRITERS)(self._path, text)


def _server(name: str) -> Json:
    mode = "exit_at_start" if name == BROKEN else "ok"
    return {
        **faulty(mode, "--name", name, "--tools", "0"),
        "description": "as it was",
        "tools": {"deny": []},
        "alwaysLoad": [],
    }


def _offered(name: str, server: Json) -> Sequence[str]:
    if name == BROKEN:
        return ()
    return [*TOOLS, *(f"extra_{number}" for number in range(int(server["args"][-1])))]


# Changes


def _add(random: Random, servers: Servers) -> Servers:
    free = [name for name in NAMES if name not in servers]
    if len(servers) >= MOST or not free:
        return servers
    name = random.choice(free)
    return _shuffled(random, {**servers, name: _server(name)})


def _remove(random: Random, servers: Servers) -> Servers:
    if len(servers) <= FEWEST:
        return servers
    gone = random.choice(list(servers))
    return {name: server for name, server in servers.items() if name != gone}


def _shuffled(random: Random, servers: Servers) -> Servers:
    names = random.sample(list(servers), len(servers))
    return {name: servers[name] for name in names}


def _setting(choose: Callable[[Random], Json]) -> Change:
    """Make a change of one server's settings."""

    def change(random: Random, servers: Servers) -> Servers:
        name = random.choice(list(servers))
        return {**servers, name: {**servers[name], **choose(random)}}

    return change


def _other_arguments(random: Random, servers: Servers) -> Servers:
    name = random.choice(list(servers))
    args = [*servers[name]["args"][:-1], str(random.randint(0, 5))]
    return {**servers, name: {**servers[name], "args": args}}


CHANGES: tuple[Change, ...] = (
    _add,
    _remove,
    _shuffled,
    _other_arguments,
    _setting(lambda random: {"description": f"as it is at {random.random()}"}),
    _setting(lambda random: {"tools": {"deny": random.sample(TOOLS[3:], 1)}}),
    _setting(lambda _random: {"tools": {"allow": ["*"], "deny": []}}),
    _setting(lambda random: {"alwaysLoad": random.sample(TOOLS, 2)}),
    _setting(lambda random: {"callTimeout": f"{random.randint(60, 90)}s"}),
    # Comments only: each edition has another one.
    lambda _random, servers: servers,
)


# Damages


def _half(random: Random, text: str) -> str:
    """Return the file up to somewhere in its last line."""
    last = text.rindex("\n", 0, -1)
    return text[: random.randrange(text.index("{", last) + 1, len(text) - 2)]


DAMAGES: tuple[Damage, ...] = (
    _half,
    lambda _random, text: f"{text}  odd: [\n",
    lambda _random, text: f"{text}surprise: yes\n",
    lambda _random, text: f"{text}  odd: {{comand: x}}\n",
    lambda _random, text: f"{text}  odd: {{command: x, url: 'http://localhost'}}\n",
    lambda _random, text: f"{text}  odd: {{command: x, callTimeout: soon}}\n",
    lambda _random, text: text.replace("servers:", "servers: []\nmore:"),
    lambda _random, _text: "",
    lambda _random, _text: "\0\n",
    lambda _random, _text: None,
)
"""Ways to make the file one that cannot be used; `None` takes it away."""


# Ways to write


def _in_place(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _in_two_steps(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        file.write(text[len(text) // 2 :])


def _by_renaming(path: Path, text: str) -> None:
    other = path.with_name(".servers.yaml.new")
    other.write_text(text, encoding="utf-8")
    other.replace(path)


def _by_way_of_a_backup(path: Path, text: str) -> None:
    if path.exists():
        path.rename(path.with_name("servers.yaml~"))
    path.write_text(text, encoding="utf-8")


WRITERS = (_in_place, _in_two_steps, _by_renaming, _by_way_of_a_backup)
