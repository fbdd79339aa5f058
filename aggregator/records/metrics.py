"""What Prometheus is told: counts since we were started, with labels that cannot grow for ever."""

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from threading import Lock

from aggregator import __version__
from aggregator.catalog import Catalog, Pending, Ready
from aggregator.exposure import tokens_listed, tokens_unlisted
from aggregator.records.events import (
    BY_HAND,
    CallBegan,
    CallEnded,
    Event,
    ListServed,
    Searched,
    StateChanged,
    state_word,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_TOOLS = 1000
"""Tools that are told apart; the calls of all others are counted together."""
MAX_SERVERS = 1000
"""Servers that are told apart."""
OTHER = "other"
"""What stands for all others; no tool and no server of a client's list is called so alone."""
MAX_LISTS = 100
"""Lists that wait, with what there was, to be weighed when somebody looks."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds up to which calls are counted together."""
STATES = ("ready", "idle", "pending", "needs login", "failed")

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]
"""What is added to a metric's name, its labels, and its value."""


class Metrics:
    """Counts what happens."""

    def __init__(self) -> None:
        self._calls = Counter[tuple[str, str, str]]()
        self._tools: set[tuple[str, str]] = set()
        self._servers: set[str] = set()
        self._durations = defaultdict[str, list[int]](lambda: [0] * (len(BUCKETS) + 1))
        self._seconds = defaultdict[str, float](float)
        self._in_flight: set[int] = set()
        self._searches = Counter[str]()
        self._search_tokens = 0
        self._restarts = Counter[str]()
        self._lists = deque[ListServed]()
        self._lists_served = 0
        self._saved = 0
        self._saving = Lock()

    def hear(self, event: Event) -> None:
        """Count an event."""
        match event:
            case CallBegan():
                self._in_flight.add(event.number)
            case CallEnded():
                self._count(event)
            case Searched():
                self._search_tokens += event.tokens
                for answer in event.answers:
                    self._searches["found" if answer.is_hit else "nothing"] += 1
            case ListServed() if event.origin.client not in BY_HAND:
                self._lists_served += 1
                self._lists.append(event)
                if len(self._lists) > MAX_LISTS:
                    self._weigh_next()
            case StateChanged(before=Pending(phase=phase), after=Ready()) if phase != "starting":
                self._restarts[self._server(event.server)] += 1
            case _:
                pass

    def weigh(self) -> None:
        """Sum up what lists have saved; takes a while where there are many tools."""
        while self._lists:
            self._weigh_next()

    def text(self, catalog: Catalog, sessions: int) -> str:
        """Return everything as Prometheus reads it."""
        return "".join(
            line
            for name, kind, help_text, samples in self._families(catalog, sessions)
            for line in _family(f"aggregator_{name}", kind, help_text, samples)
        )

    def _weigh_next(self) -> None:
        """Sum up what the oldest list has saved; a thread may be at it at the same time."""
        with suppress(IndexError):
            served = self._lists.popleft()
            if served.catalog.entries or not served.catalog.pending:
                saved = _saved_by(served)
                with self._saving:
                    self._saved += saved

    def _count(self, event: CallEnded) -> None:
        self._in_flight.discard(event.number)
        meant = event.server or event.meant
        server = self._server(meant) if meant else ""
        self._calls[server, self._tool(server, event), event.outcome] += 1
        if server:
            self._durations[server][bisect_left(BUCKETS, event.seconds)] += 1
            self._seconds[server] += event.seconds

    def _server(self, name: str) -> str:
        if name not in self._servers and len(self._servers) >= MAX_SERVERS:
            return OTHER
        self._servers.add(name)
        return name

    def _tool(self, server: str, event: CallEnded) -> str:
        """Return the label of a tool; what does not exist has none: anybody can ask for it."""
        if not event.server:
            return ""
        tool = server, event.label
        if tool not in self._tools and len(self._tools) >= MAX_TOOLS:
            return OTHER
        self._tools.add(tool)
        return event.label

    def _families(
        self, catalog: Catalog, sessions: int
    ) -> Iterator[tuple[str, str, str, Iterable[Sample]]]:
        states = Counter(state_word(state) for state in catalog.servers.values())
        yield "build_info", "gauge", "The version that runs.", [("", {"version": __version__}, 1)]
        yield (
            *("servers", "gauge", "Configured servers by state."),
            [("", {"state": state}, states[state]) for state in STATES],
        )
        yield (
            *("server_up", "gauge", "Whether a server is connected."),
            [
                ("", {"server": name}, isinstance(state, Ready))
                for name, state in catalog.servers.items()
            ],
        )
        yield (
            *("server_restarts_total", "counter", "How often a server came back after it failed."),
            [("", {"server": name}, number) for name, number in self._restarts.items()],
        )
        yield "sessions", "gauge", "Sessions of handshake clients.", [("", {}, sessions)]
        yield "calls_in_flight", "gauge", "Calls under way.", [("", {}, len(self._in_flight))]
        yield (
            *("calls_total", "counter", "Calls of tools by how they ended."),
            [
                ("", {"server": server, "tool": tool, "outcome": outcome}, number)
                for (server, tool, outcome), number in self._calls.items()
            ],
        )
        yield (
            *("call_duration_seconds", "histogram", "How long calls took."),
            [each for server in self._durations for each in self._histogram(server)],
        )
        yield (
            *("searches_total", "counter", "Queries by whether they found something."),
            [("", {"result": each}, self._searches[each]) for each in ("found", "nothing")],
        )
        cost = [("", dict[str, str](), self._search_tokens)]
        yield "search_tokens_total", "counter", "Tokens that answers to searches cost.", cost
        served = [("", dict[str, str](), self._lists_served)]
        yield "lists_total", "counter", "Lists of tools that clients were given.", served
        yield (
            *("list_tokens_saved", "gauge", "Tokens that lists were shorter by, together."),
            [("", {}, self._saved)],
        )

    def _histogram(self, server: str) -> Iterator[Sample]:
        counts = list(accumulate(self._durations[server]))
        for bound, number in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
            yield "_bucket", {"server": server, "le": bound}, number
        yield "_sum", {"server": server}, self._seconds[server]
        yield "_count", {"server": server}, counts[-1]


def _saved_by(served: ListServed) -> int:
    return tokens_unlisted(served.catalog) - tokens_listed(served.tools, served.catalog)


def _family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"
    for suffix, labels, value in samples:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{suffix}{f'{{{told}}}' if told else ''} {float(value):.17g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
