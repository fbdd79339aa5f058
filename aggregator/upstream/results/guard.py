"""Sees to it that no result costs a model more than it may, and that nothing of one is lost."""

from dataclasses import replace
from typing import Any

from aggregator.basics.json import JsonObject, items
from aggregator.basics.turns import in_turns
from aggregator.catalog import ToolEntry
from aggregator.clients import ClientProfile, said_of
from aggregator.downstream.questions import is_input_required
from aggregator.errors import ElsewhereError, UnknownResultError
from aggregator.exposure import offers_calls
from aggregator.names import ServerName
from aggregator.records.events import BY_HAND
from aggregator.upstream.listing import exposure_for, profile_of
from aggregator.upstream.request import Request
from aggregator.upstream.results import reading, telling
from aggregator.upstream.results.contents import contents_of
from aggregator.upstream.results.kept import Kept, KeptResults
from aggregator.upstream.results.parts import Whole, cost, cost_of_value, room_of, whole_of, written
from aggregator.upstream.results.shortening import shorten
from aggregator.upstream.results.sources import is_shown

PAGE_TOKENS = 10_000
"""What a page costs where results may cost anything."""
HOST = "aggregator-host"
"""What our library for agents calls itself, whose models have none of our tools but the search."""


def limit_for(request: Request) -> int:
    """Return what a result may cost the model behind a request; 0 for all there is."""
    settings, client = request.now.config.settings, request.conversation.client
    said = said_of(client, settings.result_limits)
    if said is not None:
        return said
    if client in BY_HAND or client == HOST:
        return 0
    if settings.max_result_tokens is not None:
        return settings.max_result_tokens
    known = profile_of(request.now, request.conversation).max_result_tokens
    # What it could not read again it is rather given whole.
    return known if known and _reader(request) else 0


def fits(result: JsonObject, request: Request, entry: ToolEntry | None, limit: int) -> bool:
    """Whether a result costs no more than it may."""
    room = room_of(limit, _ratio(request, entry))
    spent = cost(items(result.get("content")), room)
    structured = result.get("structuredContent")
    if structured is not None and not _must_stay(result, request, entry):
        for_it = cost_of_value(structured, room)
        is_both = profile_of(request.now, request.conversation).shows_whole_result
        # Other clients show their models one of the two.
        spent = spent + for_it if is_both else max(spent, for_it)
    return spent <= room or is_input_required(result)


class Guard:
    """Shortens results, keeps what was shortened, and has it read again."""

    def __init__(self, results: KeptResults) -> None:
        self._kept = results

    async def fitted(
        self,
        result: dict[str, Any],
        request: Request,
        entry: ToolEntry | None,
        limit: int,
        *,
        of: str = "",
    ) -> dict[str, Any]:
        """Return a result if it costs no more than it may, and else what is to be shown of it.

        What is asked for again is kept once: by the secret that it is asked for with.
        """
        if fits(result, request, entry, limit):
            return result
        blocks, structured = items(result.get("content")), result.get("structuredContent")
        stays = structured is not None and _must_stay(result, request, entry)
        name = self._kept.new_name(of)
        kept = await _kept(name, blocks, None if stays else structured, entry)
        kept = replace(kept, config=request.now.config, ratio=_ratio(request, entry))
        return await self._shown(result, kept, request, limit, stays=stays)

    async def _shown(
        self, result: dict[str, Any], kept: Kept, request: Request, limit: int, *, stays: bool
    ) -> dict[str, Any]:
        room = room_of(limit, kept.ratio) - telling.TOLD_BYTES
        shown = await in_turns(shorten(kept.whole, room, telling.uri_of(kept.name)))
        gone = ("content",) if stays else ("content", "structuredContent")
        rest = {key: value for key, value in result.items() if key not in gone}
        facts: dict[str, Any] = {
            "characters": kept.whole.length,
            "shown": [[0, shown.until], [shown.since, kept.whole.length]],
        }
        if not request.conversation.has_left and self._kept.keep(request.resident.key, kept):
            content = telling.shortened(kept, shown, limit, _reader(request))
            facts |= {"name": f"{telling.PREFIX}{kept.name}", "uri": telling.uri_of(kept.name)}
        else:
            content = telling.unkept(kept, shown, limit)
        meta = {**result.get("_meta", {}), telling.RESULT_META: facts}
        return {**rest, "content": content, "_meta": meta}

    async def read(self, name: str, arguments: JsonObject, request: Request) -> dict[str, Any]:
        """Answer a call that reads a result again, or looks for words in it.

        Raises:
            UnknownResultError: None is kept under the name for this client.
            InvalidCallError: What is to be read cannot be read from the arguments.
        """
        kept, path = self._found(name, request)
        whole = kept.structured if path == telling.STRUCTURED else kept.whole
        if path not in ("", telling.STRUCTURED) or whole is None:
            raise UnknownResultError(name)
        asked = reading.parse(arguments, whole.length)
        reader = _reader(request) or request.now.own_names.call_read_only
        if asked.words:
            found = await in_turns(reading.find(whole, asked))
            return telling.findings(name, kept, asked, found, length=whole.length, reader=reader)
        room = room_of(limit_for(request) or PAGE_TOKENS, kept.ratio) - telling.TOLD_BYTES
        page = await in_turns(reading.page(whole, asked.position, room))
        return telling.page(name, kept, page, whole.length, reader)

    def whose(self, name: str, request: Request) -> ServerName:
        """Return whose result is kept under a name for this client.

        Raises:
            UnknownResultError: None is.
        """
        return self._found(name, request)[0].server

    async def contents(self, name: str, request: Request) -> list[JsonObject] | None:
        """Return a result as the contents of a resource, if it is kept for this client."""
        try:
            return await in_turns(contents_of(*self._found(name, request)))
        except UnknownResultError:
            return None

    def _found(self, name: str, request: Request) -> tuple[Kept, str]:
        """Return a result, and which part of it is meant.

        Raises:
            ElsewhereError: Another replica keeps it.
            UnknownResultError: It is not kept for this client.
        """
        name, _, path = name.partition("/")
        if (place := self._kept.elsewhere(name)) is not None:
            raise ElsewhereError("this result", place)
        kept = self._kept.find(request.resident.key, name)
        # What it came from may have been hidden since.
        if kept is None or not is_shown(kept, request.now):
            raise UnknownResultError(name)
        return kept, path


def _ratio(request: Request, entry: ToolEntry | None) -> float:
    """Return how many characters of a server's texts make a token, by `tokens` if it is counted.

    To count each result itself would take longer than most calls: its definitions have been.
    """
    scale = request.now.catalog.scale
    return scale.usual if entry is None else scale.counted.get(entry.server, scale.usual)


def _must_stay(result: JsonObject, request: Request, entry: ToolEntry | None) -> bool:
    """Whether structured content must stay: a client would refuse the result without it.

    Those that do read the text to their models, and have it for programs alone.
    """
    is_relayed = request.now.own_tool(request.params["name"]) is not None
    if entry is None or is_relayed or result.get("isError") is True:
        return False
    known: ClientProfile = profile_of(request.now, request.conversation)
    return "outputSchema" in entry.tool and known.needs_structured


async def _kept(name: str, blocks: list[Any], structured: object, entry: ToolEntry | None) -> Kept:
    """Return a result as it is kept, with its structured content behind it if the text is not."""
    document: Whole | None = None
    if structured is not None:
        text = await in_turns(written(structured))
        document = await in_turns(whole_of([{"type": "text", "text": text}]))
    whole = await in_turns(whole_of(blocks))
    if document is not None and whole.length * 2 < document.length:
        # Nobody has written it out in the text, so that this is where it can be read.
        whole = await in_turns(whole_of([*blocks, document.parts[0].block]))
        document = None
    tool = "a call" if entry is None else entry.name
    server = ServerName("") if entry is None else entry.server
    return Kept(name, tool, server, whole, document)


def _reader(request: Request) -> str:
    """Return the tool of ours that reads results again, as a model knows it, if it has it."""
    now, conversation = request.now, request.conversation
    if not offers_calls(now.catalog, exposure_for(now, conversation)):
        return ""
    return profile_of(now, conversation).shows(now.own_names.call_read_only)
