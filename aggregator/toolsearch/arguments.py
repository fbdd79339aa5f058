"""What a model sent to a meta-tool, read as it was meant."""

import json
from collections.abc import Callable, Sequence
from math import isnan
from typing import NoReturn

from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, is_array, is_object
from aggregator.config.settings import DEFAULT_RESULTS, DEFINED_RESULTS, MAX_RESULTS
from aggregator.names import RESERVED, MetaTools
from aggregator.search.query import Keywords, Overview, Query, parse_query
from aggregator.toolsearch.offer import MAX_QUERIES, MAX_WAIT
from aggregator.toolsearch.schema import Json
from aggregator.toolsearch.wording import one_line

MAX_QUERY = 10_000
"""Characters of one query that are kept; the search reads fewer still."""
MAX_OFFSET = 100_000
"""Hits that can be skipped."""
MAX_NUMBER = 10**15
"""Numbers up to here are taken for words; a larger one is a mistake."""

_QUERY_KEYS = ("query", "q", "search", "text", "keywords", "tool_name", "name")
_QUERIES_KEYS = ("queries", "searches")
_RESULTS_KEYS = ("max_results", "maxResults", "limit", "top_k", "n")
_NAMES_KEYS = ("names", "names_only", "namesOnly")
_NAME_KEYS = ("name", "tool", "tool_name", "toolName")
_ARGUMENTS_KEYS = ("args", "input", "params", "parameters")


@frozen
class SearchRequest:
    """What `ToolSearch` is asked."""

    queries: tuple[Query, ...] = (Overview(),)
    max_results: int = DEFAULT_RESULTS
    """Matches for each query."""
    max_defined: int = DEFINED_RESULTS
    """Those of them that are told with their definitions: all, where a number is asked for."""
    offset: int = 0
    wait: float = 0.0
    """Seconds to give pending servers before answering."""
    notes: tuple[str, ...] = ()
    """What could not be used of what was sent."""
    explain: bool = False
    """Whether to tell why each tool was found."""
    names: bool = False
    """Whether to tell the names alone, by server."""

    @property
    def unlisted(self) -> tuple[str, ...]:
        """The lists of servers that what is asked for may be in, beside those of tools."""
        asked = {kind for each in self.queries if isinstance(each, Keywords) for kind in each.kinds}
        lists = ("prompts",) if "prompt" in asked else ()
        return (*lists, *(("resources",) if asked & {"skill", "resource"} else ()))


@frozen
class CallRequest:
    """The tool `CallTool` is to call, by any of its names, and its arguments."""

    name: str
    arguments: JsonObject


@frozen
class Problem:
    """Why a call cannot be understood, and what to send instead."""

    text: str


def parse_search(
    arguments: Json, max_results: int = DEFAULT_RESULTS, *, explain: bool = False
) -> SearchRequest:
    """Read the arguments of `ToolSearch`; whatever is sent asks for something."""
    sent = unpacked(arguments)
    if not is_object(sent):
        return SearchRequest(_parse(_queries(sent)), max_results, explain=explain)
    notes: list[str] = []
    queries = [text for key in _QUERY_KEYS + _QUERIES_KEYS for text in _queries(sent.get(key))]
    unique = tuple(dict.fromkeys(text for text in queries if text.strip()))
    if len(unique) > MAX_QUERIES:
        notes.append(f"Only the first {MAX_QUERIES} queries were answered.")

    def number(keys: Sequence[str], default: float, low: float, high: float) -> float:
        key = next((key for key in keys if sent.get(key) is not None), keys[0])
        if (value := sent.get(key)) is None:
            return default
        if (read := _number(value)) is None:
            notes.append(f"`{key}` was not a number; {default:g} was used.")
            return default
        return min(max(read, low), high)

    names = any(_is_true(sent.get(key)) for key in _NAMES_KEYS)
    usual = MAX_RESULTS if names else max_results
    wanted = int(number(_RESULTS_KEYS, usual, 1, MAX_RESULTS))
    return SearchRequest(
        queries=_parse(unique[:MAX_QUERIES]),
        max_results=wanted,
        max_defined=DEFINED_RESULTS if wanted == usual else wanted,
        offset=int(number(("offset", "skip"), 0, 0, MAX_OFFSET)),
        wait=float(number(("wait", "wait_seconds"), 0, 0, MAX_WAIT)),
        notes=tuple(notes),
        explain=explain,
        names=names,
    )


def _parse(texts: Sequence[str]) -> tuple[Query, ...]:
    """Read each query once; nothing asked for is an overview."""
    return tuple(map(parse_query, texts)) or (Overview(),)


def parse_call(
    arguments: Json,
    knows: Callable[[str], bool] = lambda _name: True,
    names: MetaTools = RESERVED,
    is_theirs: Callable[[str], bool] = lambda _name: False,
) -> CallRequest | Problem:
    """Read the arguments of `CallTool`.

    Args:
        arguments: As they came.
        knows: Tells which of several texts names a tool.
        names: What our own tools are called.
        is_theirs: Tells whether a name means a tool of a server, be it there or not.
    """
    sent = unpacked(arguments)
    for _nested in range(2):
        request = _call(sent, knows)
        if isinstance(request, Problem):
            return Problem(f"{request.text} {_EXAMPLE.format(names.search)}")
        # Models wrap a call in another one now and then; what they mean is the inner call.
        if is_theirs(request.name) or not _is_ours(request.name, names):
            return request
        if request.name.endswith(names.search):
            return Problem(f"`{names.search}` is in your own tool list: call it directly.")
        sent = request.arguments
    example = _EXAMPLE.format(names.search)
    return Problem(f"`name` must be the tool to call, not `{names.call}` itself. {example}")


_EXAMPLE = (
    'Send {{"name": "<server>__<tool>", "arguments": {{...}}}} '
    "with a name and parameters that `{}` gave."
)


def _call(sent: Json, knows: Callable[[str], bool]) -> CallRequest | Problem:
    """Tell the name from the arguments, wherever they were put."""
    if not is_object(sent):
        return Problem("The arguments must be an object.")
    named = [key for key in _NAME_KEYS if _text(sent.get(key))]
    if not named:
        return Problem("`name` is missing.")
    key = next((key for key in named if knows(_text(sent[key]))), named[0])
    rest = {name: value for name, value in sent.items() if name != key}
    inside = _inside(rest)
    if isinstance(inside, Problem):
        return inside
    return CallRequest(_text(sent[key]), inside)


def _inside(rest: dict[str, Json]) -> JsonObject | Problem:
    """Return the arguments for the tool, with those that were put beside them."""
    if "arguments" not in rest:
        alias = next((key for key in _ARGUMENTS_KEYS if key in rest), None)
        packed = unpacked(rest[alias]) if alias else None
        # Beside other keys, `input` is more likely a parameter of the tool.
        return packed if is_object(packed) and len(rest) == 1 else rest
    packed = unpacked(rest.pop("arguments"))
    if packed in (None, ""):
        return rest
    if is_object(packed):
        return {**rest, **packed}
    shown = one_line(str(packed), 80)
    return Problem(f"`arguments` must be an object, not {shown}.")


def _is_ours(name: str, names: MetaTools) -> bool:
    """Tell whether a name is that of a meta-tool, with any client's prefix."""
    return name.rpartition("__")[2] in names


def _text(value: Json) -> str:
    """Return a name as a model may have wrapped it."""
    return value.strip().strip("`'\"").strip() if isinstance(value, str) else ""


def _queries(value: Json) -> tuple[str, ...]:
    """Return the queries in a value of any shape."""
    sent = unpacked(value)
    each = sent if is_array(sent) else [sent]
    texts = (_query(one) for one in each[: MAX_QUERIES + 1])
    return tuple(text[:MAX_QUERY] for text in texts if text is not None)


def _query(value: Json) -> str | None:
    """Return one query, or None for what cannot be one."""
    if is_object(value):
        value = next((value[key] for key in _QUERY_KEYS if key in value), None)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_NUMBER:
        return str(value)
    return value if isinstance(value, str) else None


def _is_true(value: Json) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def _number(value: Json) -> float | None:
    """Return a number however it was written, or None."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if isinstance(value, float) and isnan(value) else value


def unpacked(value: Json) -> Json:
    """Return the object or array that a text holds as JSON; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        held = json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return value
    return held


def _refuse(constant: str) -> NoReturn:
    """Refuse `NaN` and its kind, which are not JSON."""
    raise ValueError(constant)
