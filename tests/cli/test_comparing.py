"""Old and new beside each other, with no more marks than are needed."""

from aggregator.basics.json import JsonObject
from aggregator.cli.comparing import compared
from aggregator.cli.paper import Paper


def tool(description: str, *parameters: str) -> JsonObject:
    properties = {name: {"type": "string"} for name in parameters}
    return {
        "description": description,
        "inputSchema": {"properties": properties, "required": list(parameters)},
    }


def test_a_line_that_is_new_as_a_whole_has_no_marks_in_it() -> None:
    page = compared("add", None, tool("Adds {+ a note."), Paper(80))

    assert page.splitlines()[:3] == ["add", "+ Adds {+ a note.", "+ {"]


def test_a_parameter_more_is_no_change_of_the_one_before_it() -> None:
    lines = compared("add", tool("Adds.", "a"), tool("Adds.", "a", "b"), Paper(80)).splitlines()

    assert [line for line in lines if line[0] in "+-"] == [
        '+    "b": {',
        '+     "type": "string"',
        "+    }",
        '+    "b"',
    ]


def test_what_is_left_out_between_two_places_is_seen() -> None:
    names = [f"p{number}" for number in range(9)]
    page = compared("add", tool("Old.", *names), tool("New.", *names, "q"), Paper(80))

    assert "  …" in page.splitlines()
    assert "- [-Old.-]" in page
