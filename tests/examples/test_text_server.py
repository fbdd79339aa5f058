import json
import sys
from typing import Any

import pytest

from tests.examples.example_client import Connect

pytestmark = pytest.mark.anyio


async def test_words_are_counted(connect: Connect):
    async with connect("text") as text:
        counts = await text.call("count_words", text="One two. Three!\nFour")
        assert counts == {
            "characters": 20,
            "words": 4,
            "lines": 2,
            "sentences": 2,
            "reading_minutes": 0.0,
        }
        assert (await text.call("count_words", text=""))["sentences"] == 0
        assert (await text.call("count_words", text="no full stop"))["sentences"] == 1
        assert "500000" in await text.refusal("count_words", text="x" * 500_001)


async def test_texts_are_compared_line_by_line(connect: Connect):
    async with connect("text") as text:
        diff = await text.call("diff_texts", before="a\nb", after="a\nc", context=0)
        assert diff.splitlines()[2:] == ["@@ -2 +2 @@", "-b", "+c"]
        same = await text.call("diff_texts", before="a", after="a")
        assert same == "The texts are the same"


async def test_patterns_find_and_replace(connect: Connect):
    async with connect("text") as text:
        found = await text.call("find_pattern", text="a1 B2", pattern="([a-z])(\\d)")
        assert found == {
            "matches": [{"text": "a1", "start": 0, "end": 2, "groups": ["a", "1"]}],
            "total": 1,
        }
        arguments: dict[str, Any] = {"text": "a1 B2", "pattern": "([a-z])(\\d)"}
        both = await text.call("find_pattern", **arguments, flags=["ignore_case"])
        assert both["total"] == 2
        replaced = await text.call("replace_pattern", **arguments, replacement="\\2\\1")
        assert replaced == {"text": "1a B2", "count": 1}


async def test_more_matches_than_fit_are_counted(connect: Connect):
    async with connect("text") as text:
        found = await text.call("find_pattern", text="a" * 600, pattern="a")
        assert (len(found["matches"]), found["total"]) == (500, 600)


async def test_a_malformed_pattern_is_refused_readably(connect: Connect):
    async with connect("text") as text:
        refusal = await text.refusal("find_pattern", text="a", pattern="(")
        assert "The pattern cannot be used: missing )" in refusal
        refusal = await text.refusal("replace_pattern", text="a", pattern="a", replacement="\\9")
        assert "invalid group reference 9" in refusal


async def test_a_pattern_that_would_run_for_ever_is_stopped(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
):
    async with connect("text") as text:
        monkeypatch.setattr(sys.modules["text"], "PATTERN_SECONDS", 0.5)
        refusal = await text.refusal("find_pattern", text="a" * 64 + "b", pattern="(a+)+$")
        assert "The pattern was stopped after 0.5 s" in refusal


@pytest.mark.parametrize(
    ("case", "converted"),
    [
        ("upper", "HELLO BIG-WORLD"),
        ("lower", "hello big-world"),
        ("title", "Hello Big-world"),
        ("sentence", "Hello big-world"),
        ("camel", "helloBigWorld"),
        ("pascal", "HelloBigWorld"),
        ("snake", "hello_big_world"),
        ("kebab", "hello-big-world"),
        ("constant", "HELLO_BIG_WORLD"),
    ],
)
async def test_case_is_changed(connect: Connect, case: str, converted: str):
    async with connect("text") as text:
        assert await text.call("convert_case", text="hello big-World", case=case) == converted


async def test_names_are_split_where_people_see_words(connect: Connect):
    async with connect("text") as text:
        for name, snake in {
            "parseHTTPResponse2": "parse_http_response_2",
            "élanVital": "élan_vital",
            "SCREAMING_CASE": "screaming_case",
        }.items():
            assert await text.call("convert_case", text=name, case="snake") == snake
        assert "case" in await text.refusal("convert_case", text="a", case="spongebob")


async def test_a_slug_is_short_plain_ascii(connect: Connect):
    async with connect("text") as text:
        assert await text.call("slugify", text="  Crème brûlée, 2 for 1!") == "creme-brulee-2-for-1"
        assert await text.call("slugify", text="one two three", max_length=8) == "one-two"
        assert "Nothing of this text" in await text.refusal("slugify", text="日本")


async def test_base64_goes_there_and_back(connect: Connect):
    async with connect("text") as text:
        encoded = await text.call("encode_base64", text="ÿÿ>")
        assert encoded == "w7/Dvz4="
        safe = await text.call("encode_base64", text="ÿÿ>", url_safe=True)
        assert safe == "w7_Dvz4="
        for form in (encoded, safe, "w7_D\nvz4"):
            assert await text.call("decode_base64", data=form) == "ÿÿ>"
        assert "This is not Base64" in await text.refusal("decode_base64", data="***")
        assert "not UTF-8 text" in await text.refusal("decode_base64", data="/w==")


async def test_texts_are_hashed(connect: Connect):
    async with connect("text") as text:
        digest = await text.call("hash_text", text="")
        assert digest.startswith("e3b0c44298fc1c149afbf4c8996fb924")
        assert len(await text.call("hash_text", text="", algorithm="md5")) == 32
        assert "algorithm" in await text.refusal("hash_text", text="", algorithm="crc")


async def test_json_is_formatted_and_checked(connect: Connect):
    async with connect("text") as text:
        document = '{"b": [1, 2], "a": "é"}'
        compact = await text.call("format_json", document=document, indent=0, sort_keys=True)
        assert compact == '{"a":"é","b":[1,2]}'
        assert json.loads(await text.call("format_json", document=document)) == json.loads(document)
        refusal = await text.refusal("format_json", document='{"a": }')
        assert "This is not JSON: Expecting value at line 1, column 7" in refusal
        assert "too much" in await text.refusal("format_json", document="[" * 200_000)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("orders[0].id", 1),
        ("orders[-1].id", 2),
        ("$.orders[*].id", [1, 2]),
        ('["odd key"]', True),
        ("orders[0][*]", [1]),
        ("$", {"orders": [{"id": 1}, {"id": 2}], "odd key": True}),
    ],
)
async def test_json_is_queried(connect: Connect, path: str, found: object):
    document = json.dumps({"orders": [{"id": 1}, {"id": 2}], "odd key": True})
    async with connect("text") as text:
        answer = await text.call("query_json", document=document, path=path)
        assert json.loads(answer) == found


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("items", "The document has no `items`; its keys are `orders`"),
        ("orders[5]", "`orders` has no `5`; it is a list of 1"),
        ("orders[0].id.x", "`orders[0].id` has nothing inside; it is `1`"),
        ("orders[", "The path is not understood from `[` on"),
    ],
)
async def test_a_path_that_leads_nowhere_is_refused_readably(
    connect: Connect, path: str, reason: str
):
    async with connect("text") as text:
        refusal = await text.refusal("query_json", document='{"orders": [{"id": 1}]}', path=path)
        assert reason in refusal


async def test_a_table_is_written_in_markdown(connect: Connect):
    async with connect("text") as text:
        table = await text.call("markdown_table", headers=["Name", "N"], rows=[["a|b", "1"]])
        assert table == "| Name | N   |\n| ---- | --- |\n| a\\|b | 1   |"
        right = await text.call("markdown_table", headers=["N"], rows=[["1"]], align="right")
        assert right == "|   N |\n| --: |\n|   1 |"
        refusal = await text.refusal("markdown_table", headers=["A", "B"], rows=[["1"]])
        assert "Row 1 needs 2 cells" in refusal


async def test_lines_are_sorted(connect: Connect):
    async with connect("text") as text:
        lines = "b10\nB9\na\nb10"
        assert await text.call("sort_lines", text=lines) == "a\nb10\nb10\nB9"
        numbers = await text.call("sort_lines", text=lines, numeric=True, unique=True)
        assert numbers == "a\nB9\nb10"
        assert await text.call("sort_lines", text="a\nb", reverse=True) == "b\na"
