"""The semantic index and its process, as the aggregator sees them."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from aggregator.catalog import Catalog, Pending, Ready
from aggregator.names import ServerName
from aggregator.search.semantic.index import SemanticIndex
from aggregator.search.semantic.meaning import NoMeaning, open_meaning
from tests.patience import PATIENCE
from tests.search.tools import entry, names

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
pytest.importorskip("numpy")

PROGRAM = str(Path(__file__).with_name("ngrams.py"))
FILES, MAIL = ServerName("files"), ServerName("mail")
DELETE = entry("files__delete", "Delete a file")
SEND = entry("mail__send", "Send a letter")


@asynccontextmanager
async def running(index: SemanticIndex) -> AsyncGenerator[SemanticIndex, None]:
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(index.run)
            yield index
            group.cancel_scope.cancel()


def trigrams(folder: Path) -> SemanticIndex:
    return SemanticIndex([sys.executable, PROGRAM, str(folder / "vectors.db")])


async def nearest(index: SemanticIndex, text: str) -> list[str]:
    found = await index.nearness(text)
    return [] if found is None else names(found.nearest(5, 0.25))


async def test_tools_are_near_once_their_vectors_are_there(tmp_path: Path) -> None:
    async with running(trigrams(tmp_path)) as index:
        index.update(FILES, [DELETE])
        index.update(MAIL, [SEND])
        assert await index.nearness("send letter") is None

        await index.until_ready()

        assert await nearest(index, "send letter") == ["mail__send"]


async def test_a_change_of_the_catalog_is_followed(tmp_path: Path) -> None:
    async with running(trigrams(tmp_path)) as index:
        index.update(FILES, [DELETE])
        index.update(MAIL, [SEND])
        index.update(FILES, [entry("files__shred", "Shred a letter")])
        await index.until_ready()
        assert set(await nearest(index, "letter")) == {"mail__send", "files__shred"}

        index.remove(MAIL)
        assert await index.nearness("letter") is None
        await index.until_ready()

        assert await nearest(index, "letter") == ["files__shred"]


async def test_it_follows_the_catalog_server_by_server(tmp_path: Path) -> None:
    async with running(trigrams(tmp_path)) as index:
        index.follow(Catalog({FILES: Ready((DELETE,)), MAIL: Ready((SEND,))}))
        await index.until_ready()
        assert await nearest(index, "send letter") == ["mail__send"]

        index.follow(Catalog({FILES: Ready((DELETE,)), MAIL: Pending()}))
        await index.until_ready()
        assert await nearest(index, "send letter") == []

        index.follow(Catalog({MAIL: Ready((SEND,))}))
        await index.until_ready()
        assert await nearest(index, "send letter delete file") == ["mail__send"]


async def test_a_catalog_that_stays_the_same_is_not_read_again(tmp_path: Path) -> None:
    catalog = Catalog({FILES: Ready((DELETE,)), MAIL: Pending()})
    async with running(trigrams(tmp_path)) as index:
        index.follow(catalog)
        await index.until_ready()

        index.follow(catalog)

        assert index.ready


async def test_a_change_during_a_question_leaves_it_to_the_words(tmp_path: Path) -> None:
    async with running(trigrams(tmp_path)) as index:
        index.update(FILES, [DELETE])
        await index.until_ready()

        async def ask() -> None:
            assert await index.nearness("delete") is None

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.lowlevel.checkpoint()
            index.update(MAIL, [SEND])


async def test_a_process_that_cannot_run_costs_only_the_meaning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for command in (["/nonexistent/model"], [sys.executable, "-c", "raise SystemExit(3)"]):
        index = SemanticIndex(command)
        index.update(FILES, [DELETE])
        with anyio.fail_after(PATIENCE):
            await index.run()
        index.update(MAIL, [SEND])

        assert await index.nearness("delete") is None
    assert caplog.messages[-1].endswith("status 3; searching by words alone")


async def test_a_process_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aggregator.search.semantic.index.ANSWER_WAIT", 0.01)
    deaf = (
        "import sys\n"
        "print('{\"ready\": 1}', flush=True)\n"
        "for line in sys.stdin: print('{\"noise\": 1}', flush=True)"
    )
    async with running(SemanticIndex([sys.executable, "-c", deaf])) as index:
        index.update(FILES, [DELETE])
        await index.until_ready()

        assert await index.nearness("delete") is None


async def test_a_late_answer_is_not_taken_for_that_of_another_question() -> None:
    """Questions are counted: no two have the same number, not even when one was given up."""
    late = (
        "import array, base64, json, sys\n"
        "print('{\"ready\": 1}', flush=True)\n"
        "answers = []\n"
        "for message in map(json.loads, sys.stdin):\n"
        "    if 'ask' in message:\n"
        "        near = array.array('h', [message['ask'] % 1000])\n"
        "        encoded = base64.b64encode(near).decode()\n"
        "        answers.append(json.dumps({'answer': message['ask'], 'near': encoded}))\n"
        "    if message.get('text') == 'delete':\n"
        "        print(*answers, sep='\\n', flush=True)"
    )
    async with running(SemanticIndex([sys.executable, "-c", late])) as index:
        index.update(FILES, [DELETE])
        await index.until_ready()

        with anyio.CancelScope() as given_up:
            given_up.cancel()
            await index.nearness("given up")
        found = [await index.nearness("delete") for _ in range(3)]

    assert [each and each.of(DELETE) for each in found] == [2, 3, 4]


async def test_a_busy_process_does_not_delay_the_end() -> None:
    stuck = "import time\nprint('{\"ready\": 1}', flush=True)\ntime.sleep(1000)"
    async with running(SemanticIndex([sys.executable, "-c", stuck])) as index:
        index.update(FILES, [DELETE])
        await index.until_ready()
        began = anyio.current_time()

    # It is killed: its own end is a quarter of an hour away.
    assert anyio.current_time() - began < PATIENCE


async def test_nothing_is_started_before_there_are_tools() -> None:
    async with running(SemanticIndex(["/nonexistent/model"])) as index:
        await anyio.wait_all_tasks_blocked()

        assert await index.nearness("anything") is None


async def test_without_the_extra_there_is_no_meaning() -> None:
    meaning = open_meaning(None, wanted=False)
    assert isinstance(meaning, NoMeaning)
    await meaning.run()
    meaning.follow(Catalog({FILES: Ready((DELETE,))}))

    assert await meaning.nearness("delete") is None
