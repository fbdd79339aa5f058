"""Results that are kept, as resources."""

from collections.abc import Iterator

from aggregator.basics.json import JsonObject, as_object
from aggregator.upstream.results.parts import Part, Whole
from aggregator.upstream.results.shelf import Kept
from aggregator.upstream.results.telling import STRUCTURED, uri_of

_JSON = "application/json"


def contents_of(kept: Kept, path: str) -> list[JsonObject] | None:
    """Return all of a result, or the part of it that a path names; nothing if there is none."""
    uri = uri_of(kept.name)
    if not path:
        return [*_all(kept, uri)]
    if path == STRUCTURED and kept.structured is not None:
        return [*_structured(kept.structured, uri)]
    number = int(path) if path.isdecimal() and path.isascii() and len(path) < len(uri) else -1
    if not 0 <= number < len(kept.whole.parts):
        return None
    return [_content(kept.whole.parts[number], f"{uri}/{number}")]


def _all(kept: Kept, uri: str) -> Iterator[JsonObject]:
    for number, part in enumerate(kept.whole.parts):
        yield _content(part, f"{uri}/{number}")
    if kept.structured is not None:
        yield from _structured(kept.structured, uri)


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
