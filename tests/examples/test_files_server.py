import os
from pathlib import Path

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from tests.examples.example_client import Caller, Connect, Load

pytestmark = pytest.mark.anyio


@pytest.fixture
def outside(sandbox: Path) -> Path:
    """A directory outside the sandbox, to which a link inside points."""
    outside = sandbox.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret", encoding="utf-8")
    (sandbox / "out").symlink_to(outside)
    return outside


async def test_a_file_is_written_read_and_deleted(connect: Connect, sandbox: Path):
    async with connect("files") as files:
        written = await files.call("write_file", path="a/b.txt", content="one\ntwo\n")
        assert written == "Wrote 8 characters to a/b.txt"
        assert await files.call("read_file", path="a/b.txt") == "one\ntwo\n"
        assert (sandbox / "a" / "b.txt").read_text(encoding="utf-8") == "one\ntwo\n"
        assert await files.call("delete_file", path="a/b.txt") == "Deleted a/b.txt"
        assert "There is no `a/b.txt`" in await files.refusal("read_file", path="a/b.txt")


async def test_a_file_is_replaced_only_if_asked(connect: Connect):
    async with connect("files") as files:
        await files.call("write_file", path="a", content="old")
        refusal = await files.refusal("write_file", path="a", content="new")
        assert "`a` exists already" in refusal
        await files.call("write_file", path="a", content="new", overwrite=True)
        assert await files.call("read_file", path="a") == "new"


async def test_some_lines_of_a_file_can_be_read(connect: Connect):
    async with connect("files") as files:
        await files.call("write_file", path="a", content="1\n2\n3\n4\n")
        part = await files.call("read_file", path="a", first_line=2, lines=1)
        assert part == "2\n\n[2 more lines; continue at line 3]"


async def test_text_is_appended_on_a_line_of_its_own(connect: Connect):
    async with connect("files") as files:
        await files.call("append_to_file", path="log/a", content="one")
        await files.call("append_to_file", path="log/a", content="two\n")
        await files.call("append_to_file", path="log/a", content="three")
        assert await files.call("read_file", path="log/a") == "one\ntwo\nthree"


async def test_a_replacement_must_be_unambiguous(connect: Connect):
    async with connect("files") as files:
        await files.call("write_file", path="a", content="x y x")
        replaced = await files.call("replace_in_file", path="a", old="y", new="z")
        assert replaced == "Replaced 1 occurrence in a"
        refusal = await files.refusal("replace_in_file", path="a", old="x", new="w")
        assert "occurs 2 times" in refusal
        await files.call("replace_in_file", path="a", old="x", new="w", every=True)
        assert await files.call("read_file", path="a") == "w z w"
        refusal = await files.refusal("replace_in_file", path="a", old="x", new="w")
        assert "does not occur" in refusal


async def test_directories_are_listed_and_files_found_by_name(connect: Connect, sandbox: Path):
    async with connect("files") as files:
        await files.call("create_directory", path="docs")
        await files.call("create_directory", path="docs")
        await files.call("write_file", path="docs/a.md", content="a")
        await files.call("write_file", path="b.txt", content="bb")
        (sandbox / "link").symlink_to("b.txt")
        listing = await files.call("list_directory")
        assert [(entry["path"], entry["kind"]) for entry in listing["entries"]] == [
            ("b.txt", "file"),
            ("docs", "directory"),
            ("link", "link"),
        ]
        assert listing["more"] is False
        found = await files.call("find_files", pattern="*.md")
        assert [entry["path"] for entry in found["entries"]] == ["docs/a.md"]
        assert (await files.call("file_info", path="b.txt"))["bytes"] == 2
        refusal = await files.refusal("list_directory", path="b.txt")
        assert "`b.txt`: Not a directory" in refusal


async def test_a_search_shows_lines_and_counts_what_it_skipped(connect: Connect, sandbox: Path):
    async with connect("files") as files:
        await files.call("write_file", path="a.txt", content="Tea\n  green tea\nmilk")
        await files.call("write_file", path="b.md", content="TEA")
        (sandbox / "binary").write_bytes(b"tea\xff")
        (sandbox / "large").write_text("tea\n" * 300_000, encoding="utf-8")
        found = await files.call("search_files", text="tea")
        places = [(match["path"], match["line"], match["text"]) for match in found["matches"]]
        assert places == [("a.txt", 1, "Tea"), ("a.txt", 2, "green tea"), ("b.md", 1, "TEA")]
        assert (found["files_searched"], found["files_skipped"]) == (2, 2)
        exact = await files.call("search_files", text="tea", pattern="*.txt", ignore_case=False)
        assert [match["line"] for match in exact["matches"]] == [2]


async def test_a_search_that_finds_too_much_says_so(connect: Connect):
    async with connect("files") as files:
        await files.call("write_file", path="a", content="tea\n" * 600)
        found = await files.call("search_files", text="tea")
        assert (len(found["matches"]), found["more"]) == (500, True)


async def test_files_are_moved_and_copied_but_never_over_others(connect: Connect):
    async with connect("files") as files:
        await files.call("write_file", path="a", content="text")
        assert await files.call("copy_file", source="a", destination="d/b") == "Copied a to d/b"
        assert await files.call("move_path", source="a", destination="d/c") == "Moved a to d/c"
        for tool in ("copy_file", "move_path"):
            refusal = await files.refusal(tool, source="d/b", destination="d/c")
            assert "`d/c` exists already" in refusal
        refusal = await files.refusal("move_path", source="d", destination="d/e/f")
        assert "cannot be moved into itself" in refusal
        refusal = await files.refusal("move_path", source="missing", destination="new")
        assert "There is no `missing`" in refusal


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "out/secret", "out"]
)
async def test_no_path_leads_out_of_the_sandbox(
    connect: Connect, sandbox: Path, outside: Path, path: str
):
    (sandbox / "a").write_text("a", encoding="utf-8")
    async with connect("files") as files:
        for tool in ("read_file", "file_info", "list_directory", "create_directory"):
            assert "leads out of the sandbox" in await files.refusal(tool, path=path)
        refusal = await files.refusal("write_file", path=path, content="x", overwrite=True)
        assert "leads out of the sandbox" in refusal
        if path != "out":
            assert "leads out" in await files.refusal("delete_file", path=path)
            assert "leads out" in await files.refusal("move_path", source="a", destination=path)
        assert (await files.call("search_files", text="secret"))["matches"] == []
    assert (outside / "secret").read_text(encoding="utf-8") == "secret"


async def test_deleting_a_link_leaves_what_it_points_to(connect: Connect, outside: Path):
    async with connect("files") as files:
        assert "not a directory" in await files.refusal("delete_directory", path="out")
        assert await files.call("delete_file", path="out") == "Deleted out"
    assert (outside / "secret").exists()


async def test_what_cannot_be_read_is_refused_readably(connect: Connect, sandbox: Path):
    (sandbox / "large").write_bytes(b"x" * 1_000_001)
    (sandbox / "binary").write_bytes(b"\xff")
    (sandbox / "loop").symlink_to("loop")
    os.mkfifo(sandbox / "pipe")
    reasons = {
        "large": "too large: 1,000,001 bytes, and the limit is 1,000,000",
        "binary": "is not UTF-8 text",
        "pipe": "is not a regular file",
        "loop": "`loop`",
        ".": "is not a regular file",
        "x" * 300: "File name too long",
        "a\0b": "is not a path",
    }
    async with connect("files") as files:
        for path, reason in reasons.items():
            assert reason in await files.refusal("read_file", path=path)
        assert "That is the sandbox itself" in await files.refusal("delete_file", path="x/..")
        await files.call("create_directory", path="d")
        assert "use `delete_directory`" in await files.refusal("delete_file", path="d")


async def test_without_anyone_to_ask_a_full_directory_needs_confirm(connect: Connect):
    async with connect("files") as files:
        await files.call("write_file", path="d/a", content="a")
        assert "set `confirm`" in await files.refusal("delete_directory", path="d")
        assert await files.call("delete_directory", path="d", confirm=True) == "Deleted d"
        await files.call("create_directory", path="empty")
        assert await files.call("delete_directory", path="empty") == "Deleted empty"
        assert "`empty` is not a directory" in await files.refusal("delete_directory", path="empty")


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (ElicitResult(action="accept", content={"delete": True}), False),
        (ElicitResult(action="accept", content={"delete": False}), True),
        (ElicitResult(action="decline"), True),
        (ElicitResult(action="cancel"), True),
    ],
)
async def test_a_person_is_asked_before_a_full_directory_goes(
    load: Load, mode: str, sandbox: Path, answer: ElicitResult, kept: bool
):
    questions: list[str] = []

    async def on_elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        questions.append(params.message)
        return answer

    (sandbox / "d").mkdir()
    (sandbox / "d" / "a").touch()
    async with Client(load("files"), mode=mode, elicitation_callback=on_elicit) as client:
        result = await client.call_tool("delete_directory", {"path": "d", "confirm": True})
        assert await Caller(client).call("create_directory", path="other")
    assert questions == ["Delete `d` and the 1 entry in it?"]
    assert (result.is_error, (sandbox / "d").exists()) == (kept, kept)
