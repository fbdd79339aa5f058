"""What a search or a call gave, in the forms that model APIs accept."""

import json
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from aggregator.basics.json import JsonObject, as_object, items
from aggregator.host.pool import Tool, read_pool

SEARCH_META = "aggregator/search"
"""Where a search's result says for programs what it found."""
SEEN = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The images that both vendors' models can see."""


class Picture(NamedTuple):
    """An image in base64."""

    kind: str
    data: str


class Result(NamedTuple):
    """What a call gave."""

    parts: tuple[str | Picture, ...]
    is_error: bool = False


class Finding(NamedTuple):
    """What a search found."""

    tools: tuple[Tool, ...] = ()
    remark: str = ""
    """What else the model should know; what to do, where nothing was found."""


def read_result(result: JsonObject) -> Result:
    """Read the result of a call."""
    parts = tuple(_parts(result))
    return Result(parts or ("",), is_error=result.get("isError") is True)


def read_finding(result: JsonObject, mine: Sequence[Tool] = ()) -> Finding:
    """Read the result of a search, together with what was found of the author's own tools."""
    facts = as_object(as_object(result.get("_meta")).get(SEARCH_META))
    own = {tool.name for tool in mine}
    known, referred = read_pool(facts).tools, _referred(facts)
    found = (*mine, *(tool for name, tool in known.items() if name in referred))
    if not found:
        text = [each for each in read_result(result).parts if isinstance(each, str)]
        return Finding((), "\n".join(text))
    return Finding(found, "\n".join(_remarks(facts, own)))


def _remarks(facts: JsonObject, own: Container[object]) -> Iterator[str]:
    """Say what was not found."""
    for each in map(as_object, items(facts.get("missing"))):
        if each.get("name") in own:
            continue
        near = ", ".join(map(str, items(each.get("nearest"))))
        yield f"There is no tool {each.get('name')!r}." + (f" The closest: {near}." * bool(near))
    referred = _referred(facts)
    if names := [str(each) for each in items(facts.get("matches")) if each not in referred]:
        yield f'Found as well: {", ".join(names)}. Ask for "select:<name>" to have one.'
    if late := [str(as_object(each).get("name")) for each in items(facts.get(PENDING))]:
        yield f'Not searched yet: {", ".join(late)}. Ask with "wait": 10 to include them.'


PENDING = "pending_mcp_servers"
REFERENCES = "tool_references"


def _referred(facts: JsonObject) -> Container[object]:
    """Return the tools whose definitions a search gives; the others it only names."""
    references = items(facts.get(REFERENCES))
    names = {as_object(each).get("tool_name") for each in references}
    return names if references else {tool.name for tool in read_pool(facts).tools.values()}


def _parts(result: JsonObject) -> Iterator[str | Picture]:
    content = [as_object(each) for each in items(result.get("content"))]
    yield from map(_part, content)
    if not content and "structuredContent" in result:
        yield json.dumps(result["structuredContent"], ensure_ascii=False)


def _part(block: JsonObject) -> str | Picture:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" if block.get("mimeType") in SEEN:
            return Picture(str(block["mimeType"]), str(block.get("data", "")))
        case "resource":
            resource = as_object(block.get("resource"))
            text = resource.get("text")
            return text if isinstance(text, str) else f"[a file: {resource.get('uri')}]"
        case "resource_link":
            return f"[{block.get('name', 'a resource')}: {block.get('uri')}]"
        case kind:
            return f"[{kind}, {block.get('mimeType', 'of no known type')}]"


def messages_content(result: Result) -> list[dict[str, Any]]:
    """Return the content of a `tool_result` block."""
    return [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {
            "type": "image",
            "source": {"type": "base64", "media_type": part.kind, "data": part.data},
        }
        for part in result.parts
        if part
    ]


def responses_output(result: Result) -> str | list[dict[str, Any]]:
    """Return the output of a `function_call_output` item."""
    texts = [part for part in result.parts if isinstance(part, str)]
    failed = "The call failed: " if result.is_error else ""
    if len(texts) == len(result.parts):
        return failed + "\n".join(texts)
    return [
        {"type": "input_text", "text": part}
        if isinstance(part, str)
        else {
            "type": "input_image",
            "detail": "auto",
            "image_url": f"data:{part.kind};base64,{part.data}",
        }
        for part in result.parts
    ]
