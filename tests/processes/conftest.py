"""Every test here starts real processes, and leaves none."""

from tests.census import census_fixture

__all__ = ["census_fixture"]
