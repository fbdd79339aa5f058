"""What comes first, and what is left out."""

from tests.search.tools import entry, index_of, search


def test_the_example_people_know():
    index = index_of(
        entry("slack__send_message"),
        entry("slack__list_channels"),
        entry("github__create_issue"),
        entry("email__send_email"),
    )
    assert search(index, "slack send") == [
        "slack__send_message",
        "slack__list_channels",
        "email__send_email",
    ]
