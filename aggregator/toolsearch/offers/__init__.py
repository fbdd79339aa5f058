"""What a search finds beside tools: prompts, skills and resources, each as what it is called by."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, get_args

from aggregator.basics.json import JsonObject, as_object, items
from aggregator.catalog import Offers, PromptEntry, ResourceEntry, SkillEntry, ToolEntry
from aggregator.names import ServerName, ToolName
from aggregator.toolsearch.offers.skills import Skill

OfferKind = Literal["prompt", "skill", "resource"]
OFFER_KINDS: tuple[OfferKind, ...] = get_args(OfferKind)

OURS = ServerName("")
"""Stands for no server: where skills are that the configuration names."""
MAX_RESOURCES = 1_000
"""Resources of one server that are found."""
MAX_ARGUMENTS = 64
"""Arguments of a prompt that are told."""
MAX_SEGMENTS = 32
"""Slashes in a URI before which it can turn out to be a file of a skill."""
AT_ONCE = 100
"""Offers, or what is none, that are looked at before others have their turn."""


class Offer(NamedTuple):
    """One thing beside tools that can be found, and used through the tool that calls others."""

    kind: OfferKind
    entry: ToolEntry
    """What it is found by and told as, like a tool: its name has its kind in front."""


def called(kind: OfferKind, name: str) -> ToolName:
    """Return what something is called by: no tool can have a colon in its name."""
    return ToolName(f"{kind}:{name}")


def split(text: str) -> tuple[OfferKind, str] | None:
    """Tell the kind from the name that something is called by; nothing if it is a tool's."""
    head, colon, name = text.partition(":")
    for kind in OFFER_KINDS if colon else ():
        if head.strip().lower() == kind:
            return kind, name.strip()
    return None


def server_skill(entry: SkillEntry) -> str:
    """Return the name of a server's skill, in which the server's comes first."""
    return f"{entry.server}/{entry.path}"


def is_one_word(name: str) -> bool:
    """Whether a server's name for something can stand in a line of ours, and end where it ends."""
    return name.isprintable() and " " not in name


def offers_of(offers: Offers, shown: Callable[[ResourceEntry], str]) -> Iterator[Offer | None]:
    """Yield what a server offers beside tools, its resources by the URIs that clients are shown.

    Files of its skills are found as those alone; they, and what cannot be called, are nothing.
    """
    yield from map(_prompt, offers.prompts)
    for skill in offers.skills:
        yield _server_skill(skill) if is_one_word(skill.path) else None
    roots = {each.root for each in offers.skills}
    left = MAX_RESOURCES
    for entry in offers.resources:
        if not left:
            return
        is_apart = is_one_word(entry.own_uri) and roots.isdisjoint(_directories(entry.own_uri))
        left -= is_apart
        yield _resource(entry, shown(entry)) if is_apart else None


def _directories(uri: str) -> Iterator[str]:
    """Yield what a URI begins with, up to each of its first slashes."""
    end = 0
    for _ in range(MAX_SEGMENTS):
        end = uri.find("/", end) + 1
        if not end:
            return
        yield uri[:end]


def local_skill(skill: Skill) -> Offer:
    """Return a skill on this machine as it is found."""
    return _offer("skill", skill.name, OURS, {"name": skill.name, "description": skill.description})


def _prompt(entry: PromptEntry) -> Offer:
    return _offer("prompt", entry.name, entry.server, prompt_definition(entry))


def prompt_definition(entry: PromptEntry) -> JsonObject:
    """Return a prompt in the form of a tool that takes its arguments, which are all texts."""
    arguments = [as_object(each) for each in items(entry.prompt.get("arguments"))[:MAX_ARGUMENTS]]
    named = {each["name"]: each for each in arguments if isinstance(each.get("name"), str)}
    schema = {
        "type": "object",
        "properties": {name: _argument(each) for name, each in named.items()},
        "required": [name for name, each in named.items() if each.get("required") is True],
    }
    kept = {key: entry.prompt[key] for key in ("title", "description") if key in entry.prompt}
    return {"name": entry.own_name, **kept, "inputSchema": schema}


def _argument(argument: JsonObject) -> JsonObject:
    said = argument.get("description")
    return {"type": "string", **({"description": said} if isinstance(said, str) else {})}


def _server_skill(entry: SkillEntry) -> Offer:
    name = entry.path.rpartition("/")[2]
    definition = {"name": name, "description": entry.description}
    return _offer("skill", server_skill(entry), entry.server, definition)


def _resource(entry: ResourceEntry, uri: str) -> Offer:
    kept = ("name", "title", "description")
    definition = {key: entry.resource[key] for key in kept if key in entry.resource}
    return _offer("resource", uri, entry.server, {"name": entry.own_uri, **definition})


def _offer(kind: OfferKind, name: str, server: ServerName, definition: JsonObject) -> Offer:
    reads = kind != "prompt"
    return Offer(kind, ToolEntry(called(kind, name), server, definition, read_only=reads))


def by_kind(
    offers: Iterable[Offer | None],
) -> Generator[None, None, Mapping[OfferKind, Mapping[ToolName, Offer]]]:
    """Return offers by their kind and by what they are called, the first of a name.

    Yield where a turn is over.
    """
    found: dict[OfferKind, dict[ToolName, Offer]] = {kind: {} for kind in OFFER_KINDS}
    for number, offer in enumerate(offers, 1):
        if offer is not None:
            found[offer.kind].setdefault(offer.entry.name, offer)
        if number % AT_ONCE == 0:
            yield
    return found
