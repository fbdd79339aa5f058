"""What a server offers beside tools, told apart within bounds."""

from aggregator.basics.effort import finished
from aggregator.catalog import Offers, ResourceEntry, SkillEntry
from aggregator.names import ServerName
from aggregator.toolsearch.offers import MAX_RESOURCES, by_kind, offers_of
from tests.work import longest_turn

SHOP = ServerName("shop")


def resource(uri: str) -> ResourceEntry:
    return ResourceEntry(SHOP, {"uri": uri})


def skill(path: str) -> SkillEntry:
    return SkillEntry(SHOP, {"uri": f"skill://{path}/SKILL.md"})


def test_files_of_skills_are_not_found_as_resources() -> None:
    uris = ("skill://a/x.md", "skill://a/b/c/y.md", "skill://ab/x.md", "docs://a/x", "plain:x")
    offers = Offers(resources=tuple(map(resource, uris)), skills=(skill("a"),))

    found = finished(by_kind(offers_of(offers, lambda entry: entry.own_uri)))

    assert [*found["skill"]] == ["skill:shop/a"]
    assert [*found["resource"]] == [f"resource:{uri}" for uri in uris[2:]]


def test_however_many_skills_and_resources_there_are_each_turn_is_short() -> None:
    deep = "/" * 2_000
    offers = Offers(
        resources=tuple(resource(f"skill://s{number}/{deep}") for number in range(2_000)),
        skills=tuple(skill(f"s{number}") for number in range(1_000)),
    )
    steps = by_kind(offers_of(offers, lambda entry: entry.own_uri))

    assert longest_turn(steps) < 10_000
    found = finished(by_kind(offers_of(offers, lambda entry: entry.own_uri)))
    assert len(found["skill"]) == 1_000
    assert len(found["resource"]) == MAX_RESOURCES
