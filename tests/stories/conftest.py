"""Every story is told twice: to clients in process, and to those that come through a hub."""

import pytest


@pytest.fixture(autouse=True)
def _each_way(each_way: None) -> None:
    """Run each story both ways."""
