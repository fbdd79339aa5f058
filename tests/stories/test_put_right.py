"""A tool that the configuration calls and describes otherwise."""

import pytest

from tests.peers import ERAS, Era, Peer, aggregating, connect_to, ready, text_of, visiting

pytestmark = pytest.mark.anyio

OPTIONS = {
    "rename": {"mk": "make_note"},
    "describe": {"mk": "Write down a thought for later."},
    "read_only": ("mk",),
}


@pytest.fixture
def anyio_backend(virtual_time: object) -> object:
    return virtual_time


@pytest.mark.parametrize("era", ERAS)
async def test_it_is_found_by_old_and_new_words_and_called_by_its_new_name(era: Era) -> None:
    peer = Peer(mk={"description": "Creates a memo."}, rm={"description": "Removes it."})

    async with aggregating({"notes": connect_to(peer)}, notes=OPTIONS) as upstream:
        async with visiting(upstream, era) as client:
            await ready(upstream)
            found = [
                text_of(await client.call_tool("ToolSearch", {"query": query}))
                for query in ("thought", "memo", "make note", "select:notes__make_note")
            ]
            answer = await client.call_tool(
                "CallReadOnlyTool", {"name": "notes__make_note", "arguments": {}}
            )
            by_old = await client.call_tool("CallTool", {"name": "notes__mk", "arguments": {}})

    assert all("## notes__make_note (server notes, read-only)" in each for each in found)
    assert all("| Write down a thought for later." in each for each in found)
    assert "Creates a memo" not in "".join(found)
    assert text_of(answer) == text_of(by_old) == "mk: {}"
