"""Which template describes a URI, and whose it is."""

import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.basics.effort import Effort
from aggregator.catalog import Catalog, Failed, Offers, Pending, Ready, ResourceEntry
from aggregator.fleet.routes import Route, Routes, marked
from aggregator.fleet.templates import MAX_PARTS, MAX_URI, Address, parse
from aggregator.names import ServerName
from aggregator.upstream.seal import (
    MAX_TOKEN,
    MAX_VALUE,
    VALID_FOR,
    Binding,
    ForeignStateError,
    OwnCipher,
    Sealer,
    TooLongError,
)
from tests.work import BOUND, calls

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
    assert parsed.matches(Address(uri)) is fits


@given(st.lists(SEGMENT, min_size=1, max_size=5))
def test_what_was_made_of_a_template_is_described_by_it(values: list[str]) -> None:
    template = parse("x://" + "/".join(f"{{v{n}}}" for n in range(len(values))))

    assert template is not None
    uri = "x://" + "/".join(each.replace("/", "_") for each in values)
    assert template.matches(Address(uri))


def test_an_ambiguous_template_takes_no_longer_than_its_parts_times_the_uri() -> None:
    text = "x:" + "{+a}a" * ((MAX_PARTS - 2) // 2)
    template = parse(text)
    address = Address("x:" + "a" * (MAX_URI - 3) + "b")

    assert template is not None
    assert calls(lambda: template.matches(address)) < 500
    assert not template.matches(address)
    assert parse("{a}" * MAX_PARTS) is None


PIECES = st.lists(st.sampled_from(["a", "b", "/", "ab", "{x}", "{+y}"]), max_size=8).map("".join)


@given(PIECES, st.text("ab/", max_size=10))
def test_a_template_describes_what_a_pattern_would(text: str, uri: str) -> None:
    parsed = parse(text)
    pattern = text.replace("{x}", "[^/]*").replace("{+y}", ".*")

    assert parsed is not None
    assert parsed.matches(Address(uri)) == bool(re.fullmatch(pattern, uri))


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


def offering(server: str, templates: Iterable[str]) -> Ready:
    entries = tuple(resource(server, uriTemplate=each) for each in templates)
    return Ready(offers=Offers(templates=entries))


AMBIGUOUS = ["x://{a}{b}/{c}/", "x://{+a}a{+b}a{+c}/", "{+a}" + "a{b}" * 20]


@pytest.mark.parametrize("length", [40, 400, MAX_URI])
@pytest.mark.parametrize("ambiguous", AMBIGUOUS)
def test_five_thousand_templates_cost_no_more_than_one_effort(ambiguous: str, length: int) -> None:
    """Also while another server has the template that fits."""
    many, other = ServerName("many"), ServerName("other")
    states = {
        many: offering("many", [f"{ambiguous}{each}" for each in range(5_000)]),
        other: offering("other", ["x://{+all}"]),
    }
    uri = "x://" + "a" * (length - 4)
    routes = Routes(Catalog(states))

    assert calls(lambda: routes.find(uri)) < BOUND
    assert routes.find(uri) == Route(other, uri)


def test_it_is_known_when_not_every_template_could_be_tried() -> None:
    few, all_tried = Effort(100), Effort()
    routes = Routes(
        Catalog({ServerName("a"): offering("a", (f"x://{{a}}-{n}" for n in range(500)))})
    )

    assert routes.find("x://z-499", effort=all_tried) == Route(ServerName("a"), "x://z-499")
    assert not all_tried.fell_short
    assert routes.find("x://z-499", effort=few) is None
    assert few.fell_short


TEMPLATES = st.lists(
    st.lists(
        st.sampled_from(["x://", "a", "/", "{x}", "{+y}", "{/z}", "a" * 40, "{", "}"]), max_size=40
    ).map("".join),
    min_size=1,
    max_size=5,
)


@given(TEMPLATES, st.integers(1, 1_000), st.text("ax/:b", max_size=200), st.integers(1, 20))
@settings(deadline=None, max_examples=30)
def test_no_templates_that_can_be_made_up_cost_more_than_one_effort(
    templates: list[str], times: int, uri: str, repeated: int
) -> None:
    listed = [f"{each}{n}" for n in range(times) for each in templates]
    routes = Routes(Catalog({ServerName("a"): offering("a", listed)}))

    assert calls(lambda: routes.find("x://" + uri * repeated)) < BOUND


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
    times = iter((0.0, VALID_FOR))
    sealer = Sealer(clock=lambda: next(times))

    assert sealer.open(sealer.seal(value, BINDING), BINDING) == value


@pytest.mark.parametrize("text", ["x", "é", "\ud800", "🐟", '"', "\0"])
def test_a_value_of_any_letters_comes_back_unless_it_is_too_long(text: str) -> None:
    sealer = Sealer(clock=lambda: 0.0)
    value = {"state": text * (MAX_VALUE // 7)}
    token = sealer.seal(value, BINDING)

    assert len(token) <= MAX_TOKEN
    assert sealer.open(token, BINDING) == value
    with pytest.raises(TooLongError):
        sealer.seal({"state": text * MAX_VALUE}, BINDING)


class Unused(OwnCipher):
    def open(self, purpose: str, closed: bytes, /) -> bytes:
        raise AssertionError(purpose, len(closed))


def test_what_is_too_long_for_a_token_is_not_even_read() -> None:
    with pytest.raises(ForeignStateError):
        Sealer(Unused(), lambda: 0.0).open("A" * (MAX_TOKEN + 4), BINDING)


def test_a_token_that_is_to_last_is_never_too_old() -> None:
    times = iter((0.0, 1e9))
    sealer = Sealer(clock=lambda: next(times))
    lasting = sealer.seal({"task": "x"}, BINDING, is_lasting=True)

    assert sealer.open(lasting, BINDING) == {"task": "x"}


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
    cipher = OwnCipher()
    token = Sealer(cipher, lambda: 0.0).seal({"state": "x"}, BINDING)

    for opener, binding in (
        (Sealer(cipher, lambda: 0.0), other),
        (Sealer(cipher, lambda: VALID_FOR + 1), BINDING),
        (Sealer(clock=lambda: 0.0), BINDING),
    ):
        with pytest.raises(ForeignStateError):
            opener.open(token, binding)


@given(st.text() | st.none() | st.integers())
def test_what_is_no_token_is_refused(token: object) -> None:
    with pytest.raises(ForeignStateError):
        Sealer(clock=lambda: 0.0).open(token, BINDING)


def test_what_is_shown_of_a_resource_leads_to_the_server_that_lists_it() -> None:
    bank, other = ServerName("bank"), ServerName("other")
    uris = ("docs://guide", "aggregator://bank/vault://key", "Catalog://lock/bank")
    listed = {
        name: Ready(
            offers=Offers(resources=tuple(ResourceEntry(name, {"uri": uri}) for uri in uris))
        )
        for name in (bank, other)
    }
    alone = Routes(Catalog({other: listed[other]}))
    both = Routes(Catalog(listed))

    assert alone.shown_uri(listed[other].offers.resources[0]) == "docs://guide"
    assert alone.leads_to(other, "docs://guide")
    # Who comes first has it as soon as both are there.
    assert not both.leads_to(other, "docs://guide")
    for entry in listed[other].offers.resources:
        shown = both.shown_uri(entry)
        assert shown == marked(other, entry.own_uri)
        assert both.leads_to(other, shown)
        assert both.find(shown) == Route(other, entry.own_uri)
        assert not both.leads_to(bank, shown)


def listing(server: str, *uris: str) -> Ready:
    entries = tuple(ResourceEntry(ServerName(server), {"uri": uri}) for uri in uris)
    return Ready(offers=Offers(resources=entries))


def test_what_all_servers_list_is_put_together_in_a_step_for_each_of_them() -> None:
    """However much each of them lists: this is done in one turn, whenever one of them changes."""
    many = {
        ServerName(f"s{server}"): listing(f"s{server}", *(f"s{server}://{n}" for n in range(1000)))
        for server in range(20)
    }
    for state in many.values():
        assert len(state.offers.resource_addresses.entries) == 1000

    routes = Routes(Catalog(many))

    assert calls(lambda: routes.resources) < 20 * 20
    assert list(routes.resources)[::1000] == [f"s{server}://0" for server in range(20)]


@given(
    st.lists(
        st.lists(
            st.sampled_from(["x://1", "y://2", "aggregator://b/x://1", "Catalog://z", "catalog"]),
            unique=True,
        ),
        max_size=4,
    )
)
def test_of_servers_with_the_same_uri_the_first_has_it_and_ours_nobody(
    lists: list[list[str]],
) -> None:
    names = "abcd"[: len(lists)]
    states = {
        ServerName(name): listing(name, *uris) for name, uris in zip(names, lists, strict=True)
    }
    expected: dict[str, str] = {}
    for name, uris in zip(names, lists, strict=True):
        for uri in uris:
            is_ours = uri.lower().startswith(("aggregator:", "catalog:"))
            shown = marked(ServerName(name), uri) if is_ours or uri in expected else uri
            expected.setdefault(shown, name)

    found = Routes(Catalog(dict(states))).resources

    assert [(uri, entry.server) for uri, entry in found.items()] == list(expected.items())
