"""Published servers are the same through us; what was found is on a page."""

import os

import pytest

from tests.foreign.installing import CACHE_VARIABLE
from tests.foreign.published import SERVERS, Json
from tests.foreign.servers import LISTS, PAGE, TABLE, Offer, differences, main

NOTHING: dict[str, list[Json]] = {kind: [] for kind in LISTS}


def test_the_page_has_the_versions_that_are_compared() -> None:
    """Run `python -m tests.foreign.servers` when it has not."""
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))

    assert found is not None
    rows = [line.split(" | ")[:2] for line in found[0].splitlines()[2:] if line.startswith("|")]
    assert rows == [[f"| {server.name}", f"`{server.pin}`"] for server in SERVERS]


def test_whatever_differs_is_told() -> None:
    lists = {"tools": [{"name": "a", "title": "A"}], "prompts": [{"name": "p"}]}
    direct = Offer({**NOTHING, **lists}, [{"content": []}])
    through = Offer({**NOTHING, "tools": [{"name": "a"}]}, [{"content": [], "isError": True}])

    assert [each.split(":")[0] for each in differences(direct, through)] == [
        "tool `a`",
        "prompts",
        "result",
    ]
    assert differences(direct, direct) == []


@pytest.mark.slow
@pytest.mark.skipif(
    CACHE_VARIABLE not in os.environ,
    reason=f"installs dozens of servers from npm and PyPI into ${CACHE_VARIABLE}",
)
def test_every_definition_and_every_call_is_the_same_through_us() -> None:
    assert main([server.name for server in SERVERS]) == 0
