"""Calls of what is no tool: a prompt is filled in, a skill or a resource is read."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from anyio import to_thread

from aggregator.basics.effort import Effort
from aggregator.basics.json import JsonObject, as_object, items
from aggregator.catalog import PromptEntry, SkillEntry, ToolEntry
from aggregator.errors import InvalidCallError, NotReadOnlyError, UnknownOfferError
from aggregator.fleet.fleet import Fleet
from aggregator.fleet.now import Now
from aggregator.names import ToolName
from aggregator.records.inspection import LOCK_URI
from aggregator.search.repair import nearest
from aggregator.toolsearch import CallRequest, conform
from aggregator.toolsearch.offers import OfferKind, called, is_one_word, prompt_definition, split
from aggregator.toolsearch.offers.skills import MAIN, Skill, SkillFileError, front_matter, read_file
from aggregator.toolsearch.refusal import unfit
from aggregator.toolsearch.wording import compact, listed, one_line
from aggregator.upstream.forwarding import Forward, Forwarding
from aggregator.upstream.listing import budget, profile_of
from aggregator.upstream.request import Request
from aggregator.upstream.resources import NoteServer, Resources, no_resource
from aggregator.upstream.skill_files import SKILLS_URI, contents_of

FILE_KEYS = ("file", "path", "name")
"""Where the path of a file of a skill may stand in the arguments, the right place first."""
MAX_FILES = 1_000
"""Characters of the names of a skill's other files that are told with it."""
MAX_SAID = 300
"""Characters of what a prompt says it is for that are told with it."""


def offered(name: str, now: Now) -> tuple[OfferKind, str] | None:
    """Return what a name means that is none of a tool, if it means something."""
    if (found := split(name)) is not None:
        return found
    is_prompt = ToolName(name) not in now.catalog.entries and name in now.routes.prompts
    return ("prompt", name) if is_prompt and now.find(name) is None else None


class Offered:
    """Answers calls of prompts, skills and resources."""

    def __init__(self, fleet: Fleet, forwarding: Forwarding, resources: Resources) -> None:
        self._fleet = fleet
        self._forwarding = forwarding
        self._resources = resources

    async def use(
        self, kind: OfferKind, asked: CallRequest, request: Request, note: NoteServer
    ) -> dict[str, Any]:
        """Fill in a prompt, or read something, and note whose it is once that is known.

        Raises:
            CallError: There is no such thing, or it cannot be used in this way.
            MCPError: Its server answered with an error of its own.
        """
        match kind:
            case "prompt":
                return await self._fill(asked, request, note)
            case "skill":
                return await self._read_skill(asked, request, note)
            case "resource":
                # What is withheld from models stands in there.
                if asked.name.startswith(f"{LOCK_URI}/"):
                    raise no_resource(asked.name, request)
                reading = _asking(request, {"uri": asked.name})
                result = await self._resources.read(reading, note)
                return result if "contents" not in result else {"content": [*_blocks(result)]}

    async def _fill(self, asked: CallRequest, request: Request, note: NoteServer) -> dict[str, Any]:
        name = asked.name
        if request.now.routes.prompt(name) is None:
            request = await self._forwarding.after_start(request, "prompts")
        entry = request.now.routes.prompt(name)
        if entry is None:
            raise _unknown("prompt", name, request)
        note(entry.server)
        names = request.now.own_names
        if request.now.own_tool(request.params["name"]) == names.call_read_only:
            called_by, instead = names.call_read_only, names.call
            raise NotReadOnlyError(called("prompt", name), called=called_by, instead=instead)
        fitting = _fitted(entry, asked.arguments, request)
        await self._fleet.until_ready(entry.server, request.resident)
        own = _asking(request, {"name": entry.own_name, "arguments": fitting}).params
        forward = Forward(entry.server, "prompts/get", own, called("prompt", name))
        result = await self._forwarding.send(forward, request.at(self._fleet.now))
        return result if "messages" not in result else {"content": [*_messages(entry, result)]}

    async def _read_skill(
        self, asked: CallRequest, request: Request, note: NoteServer
    ) -> dict[str, Any]:
        name, arguments = asked.name, asked.arguments
        if not _is_known(name, request.now):
            profile = request.conversation.profile
            await self._fleet.awaiting.until_read(request.now.catalog.servers, profile)
            request = await self._forwarding.after_start(request, "resources")
        file = next((arguments[key] for key in FILE_KEYS if arguments.get(key)), MAIN)
        path = str(file).removeprefix("./")
        if (local := request.now.routes.local.get(name)) is not None:
            content = await to_thread.run_sync(read_file, local, path)
            return {"content": [*_local(local, path, content, request)]}
        if (entry := request.now.routes.skills.get(name)) is None:
            raise _unknown("skill", name, request)
        note(entry.server)
        result = await self._read_of_server(entry, path, request)
        return (
            result
            if "contents" not in result
            else {"content": [*_theirs(entry, result, path, request)]}
        )

    async def _read_of_server(
        self, entry: SkillEntry, path: str, request: Request
    ) -> dict[str, Any]:
        """Read a file of a server's skill, from that server, if it is what the skill lists."""
        files = entry.files
        if not _is_inside(path) or (files is not None and path not in files):
            known = listed(filter(is_one_word, files or ()), MAX_FILES)
            has = f"; it has {known}" if known else ""
            raise SkillFileError(f"The skill has no file `{one_line(path, 200)}`{has}")
        await self._fleet.until_ready(entry.server, request.resident)
        request = request.at(self._fleet.now)
        uri = entry.root + path
        own = _asking(request, {"uri": uri}).params
        forward = Forward(entry.server, "resources/read", own, uri)
        result = await self._forwarding.send(forward, request)
        if "contents" in result and files is not None and not _is_as_listed(result, files[path]):
            fresh = await self._listed_anew(entry, path, request)
            if fresh is None or not _is_as_listed(result, fresh):
                raise SkillFileError(
                    f"`{path}` of this skill is not what `{entry.server}` says it is: it has "
                    "changed, or was changed on its way. Try again later"
                )
        _check_front(entry, path, result)
        return result

    async def _listed_anew(
        self, entry: SkillEntry, path: str, request: Request
    ) -> JsonObject | None:
        """Ask a server what it says of a file now: its list may be from before a change."""
        forward = Forward(entry.server, "skills/get", {"uri": entry.own_uri}, entry.own_uri)
        answer = await self._forwarding.send(forward, request)
        fresh = SkillEntry(entry.server, {"uri": entry.own_uri, **as_object(answer.get("skill"))})
        return (fresh.files or {}).get(path) if fresh.own_uri == entry.own_uri else None


def _asking(request: Request, params: Mapping[str, Any]) -> Request:
    """Return a request for something else, with what belongs to the call of a tool left out."""
    kept = {key: each for key, each in request.params.items() if key not in ("name", "arguments")}
    return replace(request, params={**kept, **params})


def _is_known(name: str, now: Now) -> bool:
    return name in now.routes.local or name in now.routes.skills


def _unknown(kind: OfferKind, name: str, request: Request) -> UnknownOfferError:
    routes = request.now.routes
    names = routes.prompts if kind == "prompt" else {**routes.local, **routes.skills}
    near = [called(kind, each) for each in nearest(name, names)]
    search = profile_of(request.now, request.conversation).shows(request.now.own_names.search)
    return UnknownOfferError(kind, name, near, search=search)


def _fitted(entry: PromptEntry, arguments: JsonObject, request: Request) -> JsonObject:
    """Return arguments as the texts that a prompt takes.

    Raises:
        InvalidCallError: They do not fit.
    """
    tool = ToolEntry(called("prompt", entry.name), entry.server, prompt_definition(entry))
    effort = Effort()
    conformed = conform(arguments, tool.input_schema, effort)
    if conformed.problems:
        room = budget(request.now, request.conversation)
        raise InvalidCallError(unfit(tool, conformed.problems, max_chars=room, effort=effort))
    return conformed.arguments


def _messages(entry: PromptEntry, result: JsonObject) -> Iterator[JsonObject]:
    """Yield a prompt that was filled in as what a model can read of a result."""
    said = result.get("description")
    about = f" | {one_line(said, MAX_SAID)}" if isinstance(said, str) and said else ""
    yield _text(f"The prompt {entry.name} of the server {entry.server}, filled in{about}")
    messages = [as_object(each) for each in items(result.get("messages"))]
    has_turns = any(each.get("role") != "user" for each in messages)
    for message in messages:
        if has_turns:
            yield _text(f"{one_line(str(message.get('role')), 20)}:")
        content = message.get("content")
        yield from (as_object(each) for each in items(content) or [content])


def _local(skill: Skill, path: str, content: bytes, request: Request) -> Iterator[JsonObject]:
    """Yield a file of a skill on this machine, with what a model needs to go on."""
    # Who is on a stream is on this machine, where scripts can be run.
    where = f" in {skill.directory}" if request.conversation.is_alone else ""
    yield _text(
        f"{path} of the skill {skill.name}{where}.{_others(skill.name, skill.files, request)}"
    )
    uri = f"{SKILLS_URI}/{skill.name}/{path}"
    yield from _blocks({"contents": [contents_of(uri, content)]})


def _theirs(
    entry: SkillEntry, result: JsonObject, path: str, request: Request
) -> Iterator[JsonObject]:
    """Yield a file of a server's skill, and say whose words it is."""
    files = [each for each in entry.files or () if each != MAIN and is_one_word(each)]
    others = _others(f"{entry.server}/{entry.path}", files, request)
    yield _text(
        f"{one_line(path, 200)} of the skill {one_line(entry.path, 200)}: what the server "
        f"{entry.server} says, not the user.{others}"
    )
    yield from _blocks(result)


def _others(name: str, files: "list[str] | tuple[str, ...]", request: Request) -> str:
    """Say which other files a skill has, and how they are read."""
    if not files:
        return ""
    reader = profile_of(request.now, request.conversation).shows(
        request.now.own_names.call_read_only
    )
    call = compact({"name": called("skill", name), "arguments": {"file": files[0]}})
    return f" It also has {listed(files, MAX_FILES)}: read one by {reader} {call}"


def _blocks(result: JsonObject) -> Iterator[JsonObject]:
    """Yield what was read of a resource as what a result of a tool consists of."""
    for each in map(as_object, items(result.get("contents"))):
        yield _text(each["text"]) if isinstance(each.get("text"), str) else _blob(each)


def _blob(contents: JsonObject) -> JsonObject:
    kind = str(contents.get("mimeType"))
    if kind.startswith("image/"):
        return {"type": "image", "data": contents.get("blob"), "mimeType": kind}
    return {"type": "resource", "resource": contents}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _is_inside(path: str) -> bool:
    """Whether a path stays where it begins, also where a server reads escapes in it."""
    plain = unquote(path)
    parts = plain.split("/")
    return not ({"", ".", ".."} & set(parts) or "\\" in plain or "://" in plain)


def _is_as_listed(result: JsonObject, listed_as: JsonObject) -> bool:
    """Whether what was read has the size and the digest that a skill says it has."""
    contents = [as_object(each) for each in items(result.get("contents"))]
    if len(contents) != 1:
        return False
    text, blob = contents[0].get("text"), contents[0].get("blob")
    try:
        raw = text.encode() if isinstance(text, str) else base64.b64decode(str(blob), validate=True)
    except ValueError:
        return False
    digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
    return listed_as.get("digest") == digest and listed_as.get("size") == len(raw)


def _check_front(entry: SkillEntry, path: str, result: JsonObject) -> None:
    """Refuse a skill that says something else of itself than what it was found by.

    Raises:
        SkillFileError: It does.
    """
    said = as_object(entry.skill.get("frontmatter"))
    contents = as_object(next(iter(items(result.get("contents"))), None))
    if path != MAIN or not isinstance(contents.get("text"), str):
        return
    try:
        found = front_matter(contents["text"])
    except ValueError:
        found = {}
    for key in ("name", "description"):
        if found and " ".join(str(said.get(key)).split()) != " ".join(found.get(key, "").split()):
            raise SkillFileError(
                f"The `{key}` in this skill is not the one that `{entry.server}` lists: it has "
                "changed since. Search again"
            )
