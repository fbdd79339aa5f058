"""Searching through a profile is searching a catalog that never had the rest."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.catalog import ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.search.index import Index
from aggregator.search.nearness import Nearness, Roster
from aggregator.search.query import Keywords, parse_query

WORDS = ("note", "delete", "read", "file", "open", "vault", "send", "message", "list", "page")
SERVERS = ("notes", "files", "vault")

TOOLS = st.lists(
    st.tuples(
        st.sampled_from(SERVERS),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        st.lists(st.sampled_from(WORDS), max_size=6),
        st.booleans(),
    ),
    min_size=1,
    max_size=24,
    unique_by=lambda each: (each[0], "_".join(each[1])),
)
QUERIES = st.lists(st.sampled_from((*WORDS, "nite", "delte", "vualt")), min_size=1, max_size=4)


def entry(server: str, name: Sequence[str], said: Sequence[str]) -> ToolEntry:
    own = "_".join(name)
    tool = {"name": own, "description": " ".join(said), "inputSchema": {"type": "object"}}
    return ToolEntry(ToolName(f"{server}__{own}"), ServerName(server), tool)


def of_server(entries: Sequence[ToolEntry], server: str) -> list[ToolEntry]:
    return [each for each in entries if each.server == server]


def indexed(entries: Sequence[ToolEntry], like: Index | None = None) -> Index:
    index = Index([ServerName(each) for each in SERVERS])
    for server in SERVERS:
        for _ in index.stage(ServerName(server), of_server(entries, server), "", like):
            pass
    return index


def found(index: Index, query: Keywords, near: Nearness | None) -> list[tuple[str, float]]:
    return [(hit.entry.name, hit.score) for hit in index.rank(query, 50, near)]


@pytest.mark.no_cover
@settings(max_examples=60)
@given(tools=TOOLS, asked=QUERIES, likeness=st.lists(st.integers(0, 127), min_size=24))
def test_what_is_found_and_what_it_is_worth_do_not_depend_on_what_is_hidden(
    tools: list[tuple[str, list[str], list[str], bool]], asked: list[str], likeness: list[int]
) -> None:
    everything = [entry(server, name, said) for server, name, said, _ in tools]
    shown = [each for each, (*_, is_shown) in zip(everything, tools, strict=True) if is_shown]
    query = parse_query(" ".join(asked))
    assert isinstance(query, Keywords)
    whole = Nearness(Roster(tuple(everything)), likeness[: len(everything)], 127)
    beside = [value for each, value in zip(everything, likeness, strict=False) if each in shown]
    alone = Nearness(Roster(tuple(shown)), beside, 127)
    among = whole.among({each.name: each for each in shown})

    through = indexed(shown, like=indexed(everything))
    never_had_more = indexed(shown)

    assert found(through, query, None) == found(never_had_more, query, None)
    assert found(through, query, among) == found(never_had_more, query, alone)


def test_what_another_index_has_read_is_not_read_again() -> None:
    everything = [entry("notes", ("read", "note"), ("reads",)), entry("notes", ("add",), ("adds",))]
    whole = indexed(everything)

    through = indexed(everything[:1], like=whole)

    assert len(through) == 1
    name = everything[0].name
    documents = through.documents(ServerName("notes"))
    assert documents[name] is whole.documents(ServerName("notes"))[name]
