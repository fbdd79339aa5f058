"""`aggregator check --searches`: does each search of a person's own still find what it should?"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from aggregator.basics.files import in_words, read_within
from aggregator.cli.config_file import config_path, read_config
from aggregator.cli.environment import CommandError, Environment, ExitStatus
from aggregator.cli.locking import place_of, read_lock
from aggregator.cli.opening import place, reached
from aggregator.cli.pages import as_json, why_not
from aggregator.cli.paper import Paper
from aggregator.cli.parser.options import WAIT
from aggregator.cli.starting import await_servers
from aggregator.config import Config
from aggregator.config.document import MAX_CHARACTERS, Document, Location, Value, read_document
from aggregator.config.settings import DEFINED_RESULTS, MAX_RESULTS
from aggregator.errors import ConfigError
from aggregator.names import RESERVED
from aggregator.records.inspection import TOOLS_URI
from aggregator.toolsearch.facts import EXPLAIN

FILE = "searches.yaml"
"""The file, beside `servers.yaml`."""
KEYS = ("query", "expect", "server", "within")
EXAMPLE = '- {query: "open a ticket", expect: jira__create_issue, within: 3}'

Facts = Mapping[str, Any]
"""What a search says of itself for programs."""


class Expectation(NamedTuple):
    """What one search should find."""

    query: str
    tools: tuple[str, ...]
    """Any of these."""
    server: str
    """Or any tool of this server."""
    within: int
    """Among so many of the first."""

    @property
    def goal(self) -> str:
        """What should be found, in words."""
        return " or ".join(f"`{each}`" for each in self.tools) or f"a tool of `{self.server}`"


class Miss(NamedTuple):
    """A search that does not find what it should where it should."""

    expectation: Expectation
    rank: int | None
    """Where it is found instead, if it is."""
    why: str


class Ground(NamedTuple):
    """What is searched: the tools that there are, and the search itself."""

    owners: Mapping[str, str]
    """The server of each tool."""
    absent: Mapping[str, str]
    """Why nothing is known of a server."""
    search: Callable[[str], Facts]


def run_searches(options: argparse.Namespace, environment: Environment) -> ExitStatus:
    """Try each search of the file, and say which of them miss."""
    path = _path(options, environment)
    expectations = _read(path)
    misses = list(_misses(expectations, options, environment))
    if options.json:
        found = [_document(each) for each in misses]
        report = {"file": str(path), "searches": len(expectations), "missed": found}
        environment.say(as_json(report))
    else:
        environment.say(_page(len(expectations), misses, environment.paper))
    return ExitStatus.ERROR if misses else ExitStatus.FINE


def _path(options: argparse.Namespace, environment: Environment) -> Path:
    if options.searches:
        return environment.directory / Path(options.searches).expanduser()
    return config_path(options.config, environment).with_name(FILE)


def _misses(
    expectations: Sequence[Expectation], options: argparse.Namespace, environment: Environment
) -> Iterator[Miss]:
    if options.lock:
        ground = _written_down(read_config(options, environment), options, environment)
        yield from _held(expectations, ground)
        return
    if options.url is None:
        read_config(options, environment)
    patience = WAIT if options.wait is None else options.wait
    with reached(options, environment) as peer:
        servers = await_servers(peer, environment, patience, quiet=bool(options.url))
        ready = [each for each in servers if each["state"] in ("ready", "idle")]
        known = {each["name"] for each in ready}

        def search(query: str) -> Facts:
            asked = {"query": query, "max_results": MAX_RESULTS}
            result = peer.call(RESERVED.search, asked, meta={EXPLAIN: True})
            return result["_meta"]["aggregator/search"]

        owners = {tool["name"]: tool["server"] for tool in peer.read(TOOLS_URI)["tools"]}
        absent = {each["name"]: why_not(each) for each in servers if each["name"] not in known}
        yield from _held(expectations, Ground(owners, absent, search))


def _written_down(config: Config, options: argparse.Namespace, environment: Environment) -> Ground:
    """Search what `servers.lock` says that servers offer, without starting any."""
    # Whoever asks running servers needs nothing of it.
    from aggregator.cli.lock_search import searched  # noqa: PLC0415 - see above

    path = place_of(options, environment)
    lock = read_lock(path)
    if lock is None:
        hint = f"`aggregator lock{place(options)}` writes it"
        raise CommandError(f"there is no `{path}`", hint)
    return Ground(*searched(config, lock))


def _held(expectations: Sequence[Expectation], ground: Ground) -> Iterator[Miss]:
    """Yield what is not found where it should be."""
    for each in expectations:
        facts = ground.search(each.query)
        matches: list[str] = facts["matches"]
        ranks = [at for at, name in enumerate(matches, 1) if _is_meant(name, each, ground)]
        rank = min(ranks, default=None)
        if rank is None or rank > each.within:
            name = None if rank is None else matches[rank - 1]
            yield Miss(each, rank, _why(each, name, facts, ground))


def _is_meant(name: str, expectation: Expectation, ground: Ground) -> bool:
    return name in expectation.tools or ground.owners.get(name) == (expectation.server or None)


def _why(expectation: Expectation, name: str | None, facts: Facts, ground: Ground) -> str:
    """Say why something is not found, or why others are before it."""
    if name is None and (gone := _gone(expectation, ground)):
        return gone
    explained: dict[str, Any] = {each["name"]: each for each in facts.get("explained", ())}
    matches: list[str] = facts["matches"]
    if not matches:
        return "nothing is found; `searchHints` gives a tool further words"
    first = f"first is `{matches[0]}`{_words(explained.get(matches[0]))}"
    if name is None:
        return f"{first}; nothing of what is expected is among the first {MAX_RESULTS}"
    return f"{first}; `{name}` is found{_words(explained.get(name)) or ' by meaning alone'}"


def _gone(expectation: Expectation, ground: Ground) -> str | None:
    """Say that what is expected is not there at all."""
    if expectation.server and expectation.server in ground.absent:
        return f"`{expectation.server}`: {ground.absent[expectation.server]}"
    if any(name in ground.owners for name in expectation.tools) or expectation.server:
        return None
    if told := [each for each in ground.absent if _may_have(each, expectation.tools)]:
        return f"`{told[0]}`: {ground.absent[told[0]]}"
    close = get_close_matches(expectation.tools[0], ground.owners, 1)
    likely = f"; did you mean `{close[0]}`?" if close else ""
    return f"there is no tool {expectation.goal}{likely}"


def _may_have(server: str, tools: Sequence[str]) -> bool:
    return any(name.casefold().startswith(server.casefold()) for name in tools)


def _words(explained: Mapping[str, Any] | None) -> str:
    """Say by which words a tool is found, and what they came to."""
    if explained is None:
        return ""
    words = dict.fromkeys(part["word"] for part in explained["why"] if part["word"])
    score = explained["score"]
    came = "" if score is None else f" ({score:.2f})"
    return f" by {', '.join(words)}{came}" if words else ""


def _read(path: Path) -> list[Expectation]:
    """Return what a file expects.

    Raises:
        CommandError: There is none, or it is too long.
        ConfigError: It cannot be used as written.
    """
    try:
        content = read_within(path, MAX_CHARACTERS, deadline=0.0)
        document = read_document(content.decode(), str(path))
    except FileNotFoundError:
        hint = f"Write one with lines such as `{EXAMPLE}`; `aggregator stats` proposes some"
        raise CommandError(f"there is no `{path}`", hint) from None
    except OSError as error:
        raise CommandError(f"`{path}` cannot be read: {in_words(error)}") from None
    except UnicodeDecodeError:
        raise CommandError(f"`{path}` is not UTF-8 text") from None
    except ConfigError as error:
        # What it says of an empty file is how a servers.yaml begins.
        if error.problem != "is empty":
            raise
        hint = f"Write each search as `{EXAMPLE}`"
        raise ConfigError(str(path), "is empty", hint=hint, is_of_file=True) from None
    entries = document.data
    if not isinstance(entries, list):
        raise _wrong(path, document, (), "must be a list of searches")
    return [_expectation(each, (at,), path, document) for at, each in enumerate(entries)]


def _expectation(entry: Value, at: Location, path: Path, document: Document) -> Expectation:
    if not isinstance(entry, dict):
        raise _wrong(path, document, at, "must be a mapping with `query` and `expect`")
    for key in entry:
        if key not in KEYS:
            raise _wrong(path, document, (*at, key), f"`{key}` is not a known key")
    query, server, within = (entry.get(key) for key in ("query", "server", "within"))
    expected = entry.get("expect")
    tools = expected if isinstance(expected, list) else [expected] if expected else []
    names = tuple(name for name in tools if isinstance(name, str))
    if not isinstance(query, str) or not query.strip():
        raise _wrong(path, document, at, "has no `query`")
    if len(names) != len(tools) or bool(names) == isinstance(server, str):
        raise _wrong(path, document, at, "needs `expect` with names of tools, or `server`")
    number = str(DEFINED_RESULTS) if within is None else within
    if not isinstance(number, str) or not number.isdecimal() or not _is_possible(number):
        problem = f"`within` must be a number from 1 to {MAX_RESULTS}"
        raise _wrong(path, document, (*at, "within"), problem)
    return Expectation(query, names, server if isinstance(server, str) else "", int(number))


def _is_possible(number: str) -> bool:
    return 1 <= int(number[:4]) <= MAX_RESULTS


def _wrong(path: Path, document: Document, at: Location, problem: str) -> ConfigError:
    hint = f"Write each as `{EXAMPLE}`"
    return ConfigError(str(path), problem, line=document.line(at), hint=hint)


def _page(number: int, misses: Sequence[Miss], paper: Paper) -> str:
    total = f"{number:,} search{'' if number == 1 else 'es'}"
    if not misses:
        return f"{total}, and each finds what it should"
    told = [f"{paper.fill(_place(each))}\n{paper.fill(each.why, '  ')}" for each in misses]
    miss = "misses what it" if len(misses) == 1 else "miss what they"
    return "\n\n".join([*told, paper.fill(f"{len(misses):,} of {total} {miss} should find")])


def _place(miss: Miss) -> str:
    wanted = f"should be among the first {miss.expectation.within}"
    wanted = "should be the first" if miss.expectation.within == 1 else wanted
    found = "is not found" if miss.rank is None else f"is number {miss.rank}"
    return f'"{miss.expectation.query}": {miss.expectation.goal} {found}, and {wanted}'


def _document(miss: Miss) -> dict[str, Any]:
    expectation = miss.expectation
    expected = {"expect": list(expectation.tools)} if expectation.tools else {}
    server = {"server": expectation.server} if expectation.server else {}
    within = {"within": expectation.within, "rank": miss.rank, "why": miss.why}
    return {"query": expectation.query, **expected, **server, **within}
