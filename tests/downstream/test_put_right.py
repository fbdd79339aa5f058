"""What the configuration says of tools in the place of their server."""

from dataclasses import replace

import pytest

from aggregator.catalog import Ready
from aggregator.downstream.intake import Intake, take_in
from aggregator.downstream.review import restricted, reviewed
from tests.downstream.test_intake import SERVER, told, tool

PUT_RIGHT = replace(
    SERVER,
    deny=("wipe",),
    rename={"delete_everything": "wipe", "mk": "make_note", "notes__ls": "list"},
    describe={"mk": "Make a note of something."},
    read_only=("look*",),
)


def test_a_tool_is_called_and_described_as_the_configuration_says() -> None:
    listing = [tool("mk", description="POST /v1/memo"), tool("ls"), tool("rm")]

    entries, refused = take_in(PUT_RIGHT, listing)

    assert refused == []
    assert [each.name for each in entries] == ["notes__make_note", "notes__list", "notes__rm"]
    assert [each.own_name for each in entries] == ["mk", "ls", "rm"]
    made = entries[0]
    assert made.description == made.shown["description"] == "Make a note of something."
    # Whoever knows it by its own words still finds it.
    assert made.hint == "mk POST /v1/memo"
    assert made.tool["description"] == "POST /v1/memo"


def test_a_rule_holds_for_the_name_that_a_tool_is_given() -> None:
    entries, _ = take_in(PUT_RIGHT, [tool("delete_everything"), tool("wipe_less")])

    assert [each.name for each in entries] == ["notes__wipe_less"]


def test_a_name_that_another_tool_has_is_not_given() -> None:
    entries, refused = take_in(PUT_RIGHT, [tool("mk"), tool("make_note"), tool("ls")])

    assert [each.name for each in entries] == ["notes__mk", "notes__make_note", "notes__list"]
    assert refused == ["`mk` cannot be called `make_note`, as another of its tools is"]


@pytest.mark.parametrize("trusted", [True, False])
def test_what_only_reads_is_put_right(*, trusted: bool) -> None:
    server = replace(PUT_RIGHT, trust_annotations=trusted)
    wrong = {"title": "Look", "readOnlyHint": False, "destructiveHint": True}

    (look, other), _ = take_in(server, [tool("look_up", annotations=wrong), tool("mk")])

    assert (look.read_only, other.read_only) == (True, False)
    assert look.shown["annotations"] == {"title": "Look", "readOnlyHint": True}
    state = Ready((look,))
    assert restricted(server, state) == state
    assert not restricted(replace(server, read_only=()), state).entries[0].read_only


def test_what_is_put_right_can_be_taken_back() -> None:
    entries, _ = take_in(PUT_RIGHT, [tool("mk", description="POST"), tool("look")])

    back = reviewed(SERVER, Ready(tuple(entries)))

    plain, _ = take_in(SERVER, [tool("mk", description="POST"), tool("look")])
    assert back.entries == tuple(plain)


def test_what_is_put_right_of_no_tool_is_told() -> None:
    intake = Intake(allows=PUT_RIGHT.allows)
    intake.add(tool("mk"))

    assert [each.partition(" matches")[0] for each in told(PUT_RIGHT, intake)][2:] == [
        "`look*` in `tools.readOnly`",
        "`delete_everything` in `tools.rename`",
        "`notes__ls` in `tools.rename`",
        "`create` in `searchHints`",
    ]


def test_what_is_said_of_a_tool_may_be_said_of_the_name_it_is_given() -> None:
    server = replace(
        SERVER,
        rename={"mk": "make_note"},
        describe={"make_note": "Make a note of something."},
        search_hints={"notes__make_note": "memo"},
    )
    intake = Intake(allows=server.allows)
    for _ in intake.take_in([tool("mk")]):
        pass

    (made,), _ = take_in(server, [tool("mk")])

    assert made.description == "Make a note of something."
    assert "memo" in made.hint
    # What else there is in the configuration is of no tool of these.
    assert not any("make_note" in each for each in told(server, intake))
