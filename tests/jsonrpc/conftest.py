"""Every test here may be counted."""

from tests.census import census_fixture

__all__ = ["census_fixture"]
