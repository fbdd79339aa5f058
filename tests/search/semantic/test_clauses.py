"""What of a request is read for its meaning."""

import pytest

from aggregator.search.semantic.clauses import clauses
from aggregator.search.weights import MAX_CLAUSES


@pytest.mark.parametrize("text", ["", "send it", "Send it to them. Thanks!", "v1.2.3 of a package"])
def test_a_request_of_one_sentence_is_read_as_a_whole(text: str) -> None:
    assert clauses(text) == [text]


def test_each_sentence_of_a_longer_one_is_read_by_itself() -> None:
    text = "I plan a trip. What is the weather in Rome?\nBook me a hotel; thank you."

    assert clauses(text) == [
        "I plan a trip.",
        "What is the weather in Rome?",
        "Book me a hotel;",
    ]


def test_of_very_many_only_the_first_are() -> None:
    assert len(clauses("Say one more thing. " * 200)) == MAX_CLAUSES
