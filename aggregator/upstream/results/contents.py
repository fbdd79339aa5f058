"""Results that are kept, as resources."""

from collections.abc import Generator, Iterator

from aggregator.basics.effort import Turn
from aggregator.basics.json import JsonObject, as_object
from aggregator.upstream.results.kept import Kept
from aggregator.upstream.results.parts import Part, Whole
from aggregator.upstream.results.telling import STRUCTURED, uri_of

MAX_CONTENTS = 1_000
"""Parts of a result that are read as one resource each by itself; of more, texts are joined."""

_JSON = "application/json"


def contents_of(kept: Kept, path: str) -> Generator[None, None, list[JsonObject] | None]:
    """Return all of a result, or the part of it that a path names; nothing if there is none.

    It yields where a turn is over.
    """
    uri = uri_of(kept.name)
    if not path:
        return (yield from _all(kept, uri))
    if path == STRUCTURED and kept.structured is not None:
        return [*_structured(kept.structured, uri)]
    number = int(path) if path.isdecimal() and path.isascii() and len(path) < len(uri) else -1
    if not 0 <= number < len(kept.whole.parts):
        return None
    return [_content(kept.whole.parts[number], f"{uri}/{number}")]


def _all(kept: Kept, uri: str) -> Generator[None, None, list[JsonObject]]:
    parts, contents, turn = kept.whole.parts, list[JsonObject](), Turn()
    joins, texts = len(parts) > MAX_CONTENTS, list[str]()
    for number, part in enumerate(parts):
        if turn.is_over(4):
            yield
        if joins and part.block.get("type") == "text":
            texts.append(part.text)
            continue
        _join(texts, contents, uri)
        if joins and len(contents) >= MAX_CONTENTS:
            left = f"[{len(parts) - number:,} more parts: the next is the resource {uri}/{number}]"
            _join([left], contents, uri)
            break
        contents.append(_content(part, f"{uri}/{number}"))
    _join(texts, contents, uri)
    if kept.structured is not None:
        contents.extend(_structured(kept.structured, uri))
    return contents


def _join(texts: list[str], contents: list[JsonObject], uri: str) -> None:
    """Have texts that follow each other be one, of which nothing more is to be told."""
    if texts:
        contents.append({"uri": uri, "mimeType": "text/plain", "text": "".join(texts)})
        texts.clear()


def _structured(structured: Whole, uri: str) -> Iterator[JsonObject]:
    for part in structured.parts:
        yield {"uri": f"{uri}/{STRUCTURED}", "mimeType": _JSON, "text": part.text}


def _content(part: Part, uri: str) -> JsonObject:
    block = part.block
    match block.get("type"):
        case "text":
            return {"uri": uri, "mimeType": "text/plain", "text": part.text}
        case "image" | "audio":
            return {"uri": uri, "mimeType": block.get("mimeType"), "blob": block.get("data")}
        case "resource":
            return {**as_object(block.get("resource")), "uri": uri}
        case _:
            return {"uri": uri, "mimeType": _JSON, "text": part.text}
