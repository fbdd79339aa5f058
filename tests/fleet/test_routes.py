"""Which template describes a URI, and whose it is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.catalog import Catalog, Failed, Offers, Pending, Ready, ResourceEntry
from aggregator.fleet.routes import Route, Routes, marked
from aggregator.fleet.templates import MAX_PARTS, MAX_URI, parse
from aggregator.names import ServerName
from aggregator.upstream.seal import VALID_FOR, Binding, ForeignStateError, Sealer

SEGMENT = st.text(st.characters(min_codepoint=48, max_codepoint=122), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("x://{id}/data", "x://1/data", True),
        ("x://{id}/data", "x://1/2/data", False),
        ("x://{+path}/data", "x://1/2/data", True),
        ("x://{id}", "x://", True),
        ("x://{id}", "y://1", False),
        ("x://a{?q,page}", "x://a?q=1&page=2", True),
        ("x://a{/b,c}", "x://a/1/2", True),
        ("x://{a}-{b}", "x://1-2-3", True),
        ("{+y}b{x}c", "1b2/3b4c", True),
        ("x://plain", "x://plain", True),
        ("x://plain", "x://plainer", False),
        ("x://{unclosed", "x://{unclosed", True),
    ],
)
def test_a_template_describes_what_it_says(template: str, uri: str, *, fits: bool) -> None:
    parsed = parse(template)

    assert parsed is not None
    assert parsed.matches(uri) is fits


@given(st.lists(SEGMENT, min_size=1, max_size=5))
def test_what_was_made_of_a_template_is_described_by_it(values: list[str]) -> None:
    template = parse("x://" + "/".join(f"{{v{n}}}" for n in range(len(values))))

    assert template is not None
    assert template.matches("x://" + "/".join(each.replace("/", "_") for each in values))


def test_an_ambiguous_template_takes_no_longer_than_its_length_times_the_uri() -> None:
    template = parse("x:" + "{+a}a" * ((MAX_PARTS - 2) // 2))
    began = time.perf_counter()

    assert template is not None
    assert not template.matches("x:" + "a" * (MAX_URI - 3) + "b")
    assert time.perf_counter() - began < 1
    assert parse("{a}" * MAX_PARTS) is None
    assert not template.matches("x:" + "a" * MAX_URI)


def resource(server: str, **definition: str) -> ResourceEntry:
    return ResourceEntry(ServerName(server), definition)


def test_the_template_that_pins_down_most_has_a_uri() -> None:
    wide = Ready(offers=Offers(templates=(resource("wide", uriTemplate="x://{+all}"),)))
    narrow = Ready(offers=Offers(templates=(resource("narrow", uriTemplate="x://a/{id}"),)))
    states = {ServerName("wide"): wide, ServerName("narrow"): narrow}
    routes = Routes(
        Catalog({**states, ServerName("off"): Failed("x"), ServerName("on"): Pending()})
    )

    assert routes.find("x://a/1") == Route(ServerName("narrow"), "x://a/1")
    assert routes.find("x://b/1") == Route(ServerName("wide"), "x://b/1")
    assert routes.find("y://b/1") is None
    assert routes.find("aggregator://nobody/x://a") is None


def test_a_resource_of_nobody_goes_to_who_linked_to_it_or_to_the_only_one_with_any() -> None:
    one, other = ServerName("one"), ServerName("other")
    reading = Ready(offers=Offers(reads=True))

    alone = Routes(Catalog({one: reading, other: Ready()}))
    both = Routes(Catalog({one: reading, other: reading}))

    assert alone.find("x://y") == Route(one, "x://y")
    assert both.find("x://y") is None
    assert both.find("x://y", {"x://y": other}) == Route(other, "x://y")


@given(st.text(min_size=1), st.text())
def test_a_marked_uri_leads_back_to_its_server(server: str, uri: str) -> None:
    name = ServerName(server)

    assert Routes(Catalog({name: Pending()})).find(marked(name, uri)) == Route(name, uri)


BINDING = Binding("somebody", "server", "tools/call", "tool")


@given(st.dictionaries(st.text(), st.text()))
def test_a_sealed_value_comes_back_to_whom_it_was_given(value: dict[str, str]) -> None:
    sealer = Sealer()

    assert sealer.open(sealer.seal(value, BINDING, 0.0), BINDING, VALID_FOR) == value


@pytest.mark.parametrize(
    "other",
    [
        Binding("another", "server", "tools/call", "tool"),
        Binding("somebody", "other", "tools/call", "tool"),
        Binding("somebody", "server", "prompts/get", "tool"),
        Binding("somebody", "server", "tools/call", "another"),
    ],
)
def test_a_token_is_of_no_use_for_anything_else(other: Binding) -> None:
    sealer = Sealer()
    token = sealer.seal({"state": "x"}, BINDING, 0.0)

    for opener, binding, now in (
        (sealer, other, 0.0),
        (sealer, BINDING, VALID_FOR + 1),
        (Sealer(), BINDING, 0.0),
    ):
        with pytest.raises(ForeignStateError):
            opener.open(token, binding, now)


@given(st.text() | st.none() | st.integers())
def test_what_is_no_token_is_refused(token: object) -> None:
    with pytest.raises(ForeignStateError):
        Sealer().open(token, BINDING, 0.0)
