"""The catalog as documents."""

from aggregator.catalog import Catalog, Failed, Pending, Ready, ToolEntry
from aggregator.errors import ConfigError, UnknownToolError
from aggregator.inspection import servers_document, tool_document, tools_document
from aggregator.names import ServerName, ToolName

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
    assert str(near).startswith("There is no tool `x`; the closest are `y`.")
