"""An MCP server with tools for text: count, compare, replace, convert, encode, query."""

import base64
import binascii
import difflib
import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import anyio
import bounded_regex
from bounded_regex import Flag, Job, Matches, Replaced
from json_path import JsonPathError, find
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field, JsonValue, TypeAdapter
from serving import READS, ExampleServer, plural, serve

PATTERN_SECONDS = 5.0
"""How long a regular expression may run, its process included; an honest one needs far less."""

MAX_LENGTH = 500_000
"""Characters of a text that a tool accepts."""

WORDS_PER_MINUTE = 230
"""The speed at which people read."""

Text = Annotated[str, Field(description="The text", max_length=MAX_LENGTH)]
Pattern = Annotated[
    str, Field(description="A regular expression in Python's syntax", min_length=1, max_length=1000)
]
Flags = Annotated[tuple[Flag, ...], Field(description="How the pattern is read")]
Document = Annotated[str, Field(description="A JSON document, as text", max_length=MAX_LENGTH)]
Case = Literal[
    "upper", "lower", "title", "sentence", "camel", "pascal", "snake", "kebab", "constant"
]
Align = Literal["left", "right", "center"]
Algorithm = Literal["md5", "sha1", "sha256", "sha512", "blake2b"]
UrlSafe = Annotated[bool, Field(description="Use `-` and `_` instead of `+` and `/`")]

PROSE_CASES: dict[Case, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "title": lambda text: re.sub(r"\S+", lambda word: word[0].capitalize(), text),
    "sentence": lambda text: text[:1].upper() + text[1:].lower(),
}
NAME_CASES: dict[Case, Callable[[list[str]], str]] = {
    "camel": lambda words: "".join([*words[:1], *map(str.capitalize, words[1:])]),
    "pascal": lambda words: "".join(map(str.capitalize, words)),
    "snake": "_".join,
    "kebab": "-".join,
    "constant": lambda words: "_".join(words).upper(),
}
NAME_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\dA-Z_]+|[A-Z]+|\d+")
"""A word of a name, whether the name is spaced, hyphenated, or in camel case."""

RULES: dict[Align, Callable[[int], str]] = {
    "left": lambda width: "-" * width,
    "right": lambda width: "-" * (width - 1) + ":",
    "center": lambda width: ":" + "-" * (width - 2) + ":",
}

server = ExampleServer(
    "text",
    title="Text tools",
    instructions="Tools for text: count, diff, find and replace, change case, encode, hash, JSON.",
)


@dataclass(frozen=True)
class Counts:
    """How long a text is."""

    characters: int
    words: int
    lines: int
    sentences: int
    reading_minutes: float


@server.offer("Count words", READS, hint="length characters lines statistics reading time")
def count_words(text: Text) -> Counts:
    """Count the characters, words, lines and sentences of a text, and estimate the reading time."""
    words = len(text.split())
    return Counts(
        characters=len(text),
        words=words,
        lines=len(text.splitlines()),
        sentences=len(re.findall(r"[.!?…]+(?=\s|$)", text)) or bool(words),
        reading_minutes=round(words / WORDS_PER_MINUTE, 1),
    )


@server.offer("Compare two texts", READS, hint="difference changes patch unified")
def diff_texts(
    before: Annotated[str, Field(description="The old text", max_length=MAX_LENGTH)],
    after: Annotated[str, Field(description="The new text", max_length=MAX_LENGTH)],
    context: Annotated[int, Field(description="Unchanged lines around a change", ge=0, le=50)] = 3,
) -> str:
    """Compare two texts line by line and return a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=context
    )
    return "\n".join(lines) or "The texts are the same"


@server.offer("Find by pattern", READS, hint="regex regular expression match extract")
async def find_pattern(text: Text, pattern: Pattern, flags: Flags = ()) -> Matches:
    """Find everything in a text that a regular expression matches, with positions and groups.

    A pattern that runs longer than five seconds is stopped.
    """
    return TypeAdapter(Matches).validate_json(await _run(Job(pattern, text, flags)))


@server.offer("Replace by pattern", READS, hint="regex regular expression substitute")
async def replace_pattern(
    text: Text,
    pattern: Pattern,
    replacement: Annotated[str, Field(description=r"What to put there; `\1` is the first group")],
    flags: Flags = (),
) -> Replaced:
    """Replace everything in a text that a regular expression matches, and return the new text.

    A pattern that runs longer than five seconds is stopped.
    """
    return TypeAdapter(Replaced).validate_json(await _run(Job(pattern, text, flags, replacement)))


@server.offer("Change the case", READS, hint="uppercase lowercase camelCase snake_case titlecase")
def convert_case(
    text: Text, case: Annotated[Case, Field(description="The case to change it to")]
) -> str:
    """Change the letter case of a text, or turn a name into camelCase, snake_case and the like."""
    if case in PROSE_CASES:
        return PROSE_CASES[case](text)
    return NAME_CASES[case]([word.lower() for word in NAME_WORD.findall(text)])


@server.offer("Make a slug", READS, hint="url permalink filename friendly ascii")
def slugify(
    text: Text,
    max_length: Annotated[int, Field(description="Characters at most", ge=1, le=200)] = 80,
) -> str:
    """Turn a title into a short name for a URL or a file: lower case, ASCII, hyphens."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:max_length].rstrip("-")
    if not slug:
        raise ToolError("Nothing of this text can be written in ASCII letters or digits")
    return slug


@server.offer("Encode Base64", READS, hint="base64 encode")
def encode_base64(text: Text, url_safe: UrlSafe = False) -> str:
    """Encode a text, as UTF-8, in Base64."""
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    return encode(text.encode()).decode()


@server.offer("Decode Base64", READS, hint="base64 decode")
def decode_base64(
    data: Annotated[str, Field(description="Base64, in either alphabet", max_length=MAX_LENGTH)],
) -> str:
    """Decode Base64 that contains UTF-8 text; white space and missing padding do not matter."""
    compact = "".join(data.split()).rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        decoded = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
        return decoded.decode()
    except binascii.Error as error:
        raise ToolError(f"This is not Base64: {error}") from error
    except UnicodeDecodeError as error:
        raise ToolError("This is Base64, but what it contains is not UTF-8 text") from error


@server.offer("Hash a text", READS, hint="checksum digest sha256 md5 fingerprint")
def hash_text(
    text: Text,
    algorithm: Annotated[Algorithm, Field(description="How to hash it")] = "sha256",
) -> str:
    """Return the hash of a text, as UTF-8, in hexadecimal. MD5 and SHA-1 are not for security."""
    return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


@server.offer("Format JSON", READS, hint="pretty print minify validate beautify")
def format_json(
    document: Document,
    indent: Annotated[int, Field(description="Spaces per level; 0 for one line", ge=0, le=8)] = 2,
    sort_keys: Annotated[bool, Field(description="Put keys in alphabetical order")] = False,
) -> str:
    """Check a JSON document and write it neatly, or on one line."""
    separators = None if indent else (",", ":")
    return json.dumps(
        _parse(document),
        indent=indent or None,
        sort_keys=sort_keys,
        separators=separators,
        ensure_ascii=False,
    )


@server.offer("Query JSON", READS, hint="jsonpath extract jq select field")
def query_json(
    document: Document,
    path: Annotated[str, Field(description='Such as `orders[0].lines[*].price` or `["odd key"]`')],
) -> str:
    """Take values out of a JSON document by a path; `[*]` means each of them."""
    try:
        found = find(_parse(document), path)
    except JsonPathError as error:
        raise ToolError(str(error)) from error
    return json.dumps(found if "*" in path else found[0], indent=2, ensure_ascii=False)


@server.offer("Make a Markdown table", READS, hint="format rows columns csv")
def markdown_table(
    headers: Annotated[list[str], Field(description="One title per column", min_length=1)],
    rows: Annotated[list[list[str]], Field(description="The cells, row by row")],
    align: Annotated[Align, Field(description="Where the text of cells stands")] = "left",
) -> str:
    """Write a table in Markdown, with columns lined up."""
    if wrong := [number for number, row in enumerate(rows, 1) if len(row) != len(headers)]:
        raise ToolError(f"Row {wrong[0]} needs {plural(len(headers), 'cell')}, one for each header")
    table = [[_cell(cell) for cell in row] for row in [headers, *rows]]
    widths = [max(3, *map(len, column)) for column in zip(*table, strict=True)]
    lines = [_row(row, widths, align) for row in table]
    rule = "| " + " | ".join(RULES[align](width) for width in widths) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


@server.offer("Sort lines", READS, hint="order unique deduplicate alphabetical")
def sort_lines(
    text: Text,
    unique: Annotated[bool, Field(description="Keep only one of equal lines")] = False,
    reverse: Annotated[bool, Field(description="The last first")] = False,
    numeric: Annotated[bool, Field(description="Numbers inside by value: 9 before 10")] = False,
) -> str:
    """Sort the lines of a text, without regard to letter case."""
    lines = text.splitlines()
    key = _natural if numeric else str.casefold
    chosen = list(dict.fromkeys(lines)) if unique else lines
    return "\n".join(sorted(chosen, key=key, reverse=reverse))


async def _run(job: Job) -> bytes:
    """Run a pattern in a process of its own and return the answer as JSON."""
    command = [sys.executable, "-I", str(Path(bounded_regex.__file__))]
    try:
        with anyio.fail_after(PATTERN_SECONDS):
            finished = await anyio.run_process(
                command, input=json.dumps(asdict(job)).encode(), check=False
            )
    except TimeoutError as error:
        raise ToolError(
            f"The pattern was stopped after {PATTERN_SECONDS:g} s. Make it simpler, "
            "for example without a repetition inside a repetition"
        ) from error
    if finished.returncode:
        raise ToolError(f"The pattern cannot be used: {finished.stderr.decode().strip()}")
    return finished.stdout


def _parse(document: str) -> JsonValue:
    try:
        return json.loads(document)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ToolError(f"This is not JSON: {error.msg} at {where}") from error
    except (ValueError, RecursionError) as error:
        raise ToolError(f"This JSON is too much: {error}") from error


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def _row(cells: list[str], widths: list[int], align: Align) -> str:
    place = {"left": str.ljust, "right": str.rjust, "center": str.center}[align]
    return "| " + " | ".join(place(*pair) for pair in zip(cells, widths, strict=True)) + " |"


def _natural(line: str) -> list[tuple[int, int, str]]:
    """Return a key by which digits count as numbers."""
    parts = re.findall(r"\d+|\D+", line.casefold())
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


if __name__ == "__main__":
    serve(server)
