"""What is found beside tools: whether it can be found yet is known without a look at all of it."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from aggregator.basics.signals import Signal
from aggregator.config import Settings
from aggregator.fleet.now import Now
from aggregator.fleet.other_offers import OtherOffers
from aggregator.names import ServerName
from aggregator.toolsearch.offers.skills import Skill
from tests.peers import configured
from tests.threads import refuse
from tests.toolsearch.views import ready, tool
from tests.work import calls


def test_once_all_can_be_found_no_search_looks_at_every_server_again() -> None:
    names = [ServerName(f"server-{number}") for number in range(300)]
    now = Now.starting(configured({name: {} for name in names}), since=0.0)
    for name in names:
        now = now.with_state(name, ready(name, tool("query")))
    other_offers = OtherOffers(now, Signal())

    assert other_offers.is_ready(names)
    assert calls(lambda: other_offers.is_ready(names)) < 20


def test_what_is_known_anew_is_looked_at_again() -> None:
    name = ServerName("db")
    now = Now.starting(configured({name: {}}), since=0.0)
    other_offers = OtherOffers(now, Signal())
    before = calls(lambda: other_offers.is_ready([name]))

    other_offers.follow(now.with_state(name, ready(name, tool("query"))))

    assert calls(lambda: other_offers.is_ready([name])) >= before


@pytest.mark.anyio
async def test_where_no_thread_can_be_started_skills_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "pdf" / "SKILL.md"
    place.parent.mkdir()
    place.write_text("---\nname: pdf\ndescription: Reads documents\n---\n")
    now = Now.starting(configured({}, Settings(skills=(tmp_path,))), since=0.0)
    other_offers, shown = OtherOffers(now, Signal()), list[str]()
    monkeypatch.setattr(to_thread, "run_sync", refuse)
    async with anyio.create_task_group() as group:

        def show(skills: Sequence[Skill]) -> None:
            shown.extend(each.name for each in skills)
            group.cancel_scope.cancel()

        group.start_soon(other_offers.read, show)
    assert shown == ["pdf"]
