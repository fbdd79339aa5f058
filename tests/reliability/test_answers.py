"""What is costly to work out is answered all the same; how quickly is for the soak to say."""

from pathlib import Path

import pytest

from tests.soak import answers

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_whatever_is_costly_to_answer_is_answered(tmp_path: Path) -> None:
    found = await answers.during_requests(tmp_path)
    found += await answers.during_listening(tmp_path, 8_000)
    found += await answers.during_changes(tmp_path, 5)

    assert len(found) == len(answers.REQUESTS) + 4
