"""Every test here starts real processes, and leaves none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.hub.hub_setup import HubSetup, hub_setup_in


@pytest.fixture
def hub_setup(tmp_path: Path) -> Iterator[HubSetup]:
    """A runtime directory for one test, and whatever is met there."""
    with hub_setup_in(tmp_path) as opened:
        yield opened
    assert not opened.hubs()
    assert not opened.servers()
