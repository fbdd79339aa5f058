"""Every test here starts real processes, and leaves none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.hub.harbour import Harbour, harbour_in


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    """A runtime directory for one test, and whatever is met there."""
    with harbour_in(tmp_path) as opened:
        yield opened
    assert not opened.hubs()
    assert not opened.servers()
