"""Processes that answer when the machine gets to them."""

import pytest

from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for an answer for longer than a person would."""
    monkeypatch.setattr("aggregator.search.semantic.index.ANSWER_WAIT", PATIENCE)
