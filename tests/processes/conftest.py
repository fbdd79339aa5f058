"""Every test here starts real processes, and leaves none."""

import pytest

from tests.census import Census, census_fixture

__all__ = ["census_fixture"]


@pytest.fixture(autouse=True)
def nothing_is_left(census: Census) -> Census:
    """Count processes and descriptors around each test, whether it asks for that or not."""
    return census
