"""The catalog as documents."""

from aggregator.catalog import Catalog, Failed, Pending, Ready, ToolEntry
from aggregator.errors import (
    ConfigError,
    ServerLostError,
    ServerUnavailableError,
    TurnedAwayError,
    UnknownToolError,
)
from aggregator.names import ServerName, ToolName
from aggregator.records.inspection import servers_document, tool_document, tools_document

NOTES, BOARD, FILES = (ServerName(name) for name in ("notes", "board", "files"))
ENTRY = ToolEntry(
    ToolName("notes__add"),
    NOTES,
    {"name": "add", "description": "Add a note\nand more", "inputSchema": {"type": "object"}},
    always_load=True,
)
CATALOG = Catalog(
    {
        NOTES: Ready((ENTRY,), since=1.0, protocol_version="2026-07-28", version="notes 1.0"),
        BOARD: Pending("it exited with status 1", since=4.0, phase="retrying"),
        FILES: Failed("there is no command `nope`", since=2.0),
    }
)


def test_servers_say_how_they_are_and_for_how_long() -> None:
    document = servers_document(CATALOG, {NOTES: "Notes"}, now=6.0)

    notes, board, files = document["servers"]
    assert (notes["state"], notes["tools"], notes["seconds"]) == ("ready", 1, 5.0)
    assert (notes["description"], notes["protocol"]) == ("Notes", "2026-07-28")
    assert (board["state"], board["phase"], board["seconds"]) == ("pending", "retrying", 2.0)
    assert board["reason"] == "it exited with status 1"
    assert (files["state"], files["reason"]) == ("failed", "there is no command `nope`")


def test_a_server_whose_names_lead_to_another_says_so() -> None:
    def offering(server: ServerName, *tools: str) -> Ready:
        return Ready(tuple(ToolEntry(ToolName(each), server, {"name": each}) for each in tools))

    catalog = Catalog({NOTES: offering(NOTES, "add", "x"), BOARD: offering(BOARD, "add")})
    notes, board = servers_document(catalog, {}, now=0.0)["servers"]

    assert (notes["tools"], notes["refused"]) == (2, [])
    assert (board["tools"], board["tokens"]) == (0, 0)
    assert board["refused"] == [
        "`add` cannot be reached: `notes` comes first; give one of them a `prefix`"
    ]


def test_tools_are_listed_at_a_glance() -> None:
    (tool,) = tools_document(CATALOG)["tools"]

    assert (tool["name"], tool["server"], tool["tool"]) == ("notes__add", "notes", "add")
    assert (tool["alwaysLoad"], tool["description"]) == (True, "Add a note")
    assert tool["tokens"] > 0


def test_one_tool_is_shown_whole() -> None:
    document = tool_document(ENTRY)

    assert document["definition"] == ENTRY.tool
    assert document["alwaysLoad"] is True


def test_errors_build_their_messages_from_facts() -> None:
    placed = ConfigError("servers.yaml", "is wrong", line=3)
    unplaced = ConfigError("servers.yaml", "is wrong")
    unknown = UnknownToolError("x", note="Several have that name")
    near = UnknownToolError("x", ["y"])

    assert str(placed) == "`servers.yaml`, line 3: is wrong"
    assert str(unplaced) == "`servers.yaml`: is wrong"
    assert str(unknown) == "There is no tool `x`. Several have that name"
    assert str(near).startswith("There is no tool `x`; the closest is `y`.")
    several = UnknownToolError("x", ["y", "z"])
    assert str(several).startswith("There is no tool `x`; the closest are `y`, `z`.")


def test_nothing_hidden_is_in_what_servers_say_of_themselves() -> None:
    evil = "a\x1b[2Jb\r\nc\u202e\U000e0041\u2028d"
    entry = ToolEntry(ToolName("notes__x"), NOTES, {"name": "x\ny", "description": evil})
    said = Ready(
        (entry,), version=evil, about=evil, instructions=evil, refused=(evil,), unmatched=(evil,)
    )
    catalog = Catalog({NOTES: said, BOARD: Pending(evil), FILES: Failed(evil, last_words=(evil,))})

    document = servers_document(catalog, {NOTES: evil}, now=0.0, problem=evil)

    text = repr((document, tools_document(catalog)))
    assert not [each for each in ("x1b", "u202e", "U000e0041", "u2028", "\\r") if each in text]
    notes, board, files = document["servers"]
    assert notes["instructions"] == "ab\nc\nd"
    assert (notes["about"], board["reason"], files["stderr"]) == ("ab c d", "ab c d", ["ab c d"])


def test_nothing_hidden_is_in_the_errors_that_quote_a_reason() -> None:
    evil = "gone\r\nIgnore\x1b[2J\u202e all"

    for error in (ServerUnavailableError, TurnedAwayError, ServerLostError):
        text = str(error("notes", evil))
        assert ": gone Ignore all. " in text
        assert text.isprintable()


def test_lines_that_are_no_messages_are_counted() -> None:
    document = servers_document(CATALOG, {}, now=6.0, noise={NOTES: 7})

    assert {each["name"]: each["noise"] for each in document["servers"]}[NOTES] == 7
