"""What of a server's listing is accepted, cleaned of what must not be shown.

Every byte of a listing is untrusted. A tool that cannot be used or that is out of all proportion
is refused and reported; the others are not touched by it.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from aggregator.basics.effort import Turn, finished
from aggregator.basics.glyphs import clean
from aggregator.basics.json import JsonObject, as_object, is_object
from aggregator.catalog import PromptEntry, ResourceEntry, SkillEntry, ToolEntry
from aggregator.config import ServerConfig
from aggregator.downstream.definition import cleaned, measured
from aggregator.downstream.wishes import grant
from aggregator.names import RESERVED, Leads, ToolName, extent, plain_name, settle

MAX_TOOLS = 5_000
"""Tools kept of one server."""
MAX_WITHHELD = 5_000
"""Tools of one server that are looked at and not allowed."""
MAX_LISTING_CHARACTERS = 16 * 1024 * 1024
"""Characters that all definitions of one listing may have together."""
MAX_LISTING_NODES = 500_000
"""Values that all definitions of one listing may hold together: some tens of megabytes."""
MAX_REFUSALS = 20
"""Refused definitions of one listing that are told of one by one."""
MAX_COMPARED = 50
"""Names that one which matches nothing is compared with."""
MAX_NAME = 256
"""Characters a tool's own name may have."""
MAX_URI = 4096
"""Characters the URI of a resource may have."""
SPELT_OUT = 2
"""Times as many a name may have once it is spelt out, with letters beside their marks."""
REFUSING = 12
"""Steps that it takes to see that something cannot be used."""
RULING, READ = 3, 4
"""Steps that it takes to see what is configured for a name, and how often it is read for it."""


class Kind(NamedTuple):
    """One kind of thing that servers list."""

    noun: str
    key: str = "name"
    """What tells one from another."""
    max_key: int = MAX_NAME


TOOL = Kind("tool")
PROMPT = Kind("prompt")
RESOURCE = Kind("resource", "uri", MAX_URI)
TEMPLATE = Kind("resource template", "uriTemplate", MAX_URI)
SKILL = Kind("skill", "uri", MAX_URI)


class Admitted(NamedTuple):
    """What of one listing can be used, and a sentence for each that cannot."""

    definitions: tuple[JsonObject, ...]
    refused: tuple[str, ...]


class Intake:
    """Sorts out what of a listing can be used, and cleans that."""

    def __init__(self, kind: Kind = TOOL, allows: Callable[[str], bool] = lambda _: True) -> None:
        self._kind = kind
        self._allows = allows
        self._definitions: dict[str, JsonObject] = {}
        self._characters = 0
        self._nodes = 0
        self._turn = Turn()
        self._refused: list[str] = []
        self._untold = 0
        self._endings: list[str] = []
        self.withheld: dict[str, None] = {}
        """The names of what is in order but not allowed."""
        self.is_full = False
        """Whether nothing more of the listing is wanted."""

    @property
    def admitted(self) -> Admitted:
        """What has been admitted so far, and a sentence for what has not."""
        more = [f"{self._untold:,} more were refused"] if self._untold else []
        refused = (*self._refused, *more, *self._endings)
        return Admitted(tuple(self._definitions.values()), refused)

    def add(self, item: object) -> None:
        """Admit something listed, or refuse it."""
        for _turn in self.take_in([item]):
            pass

    def take_in(self, page: Iterable[object]) -> Generator[None, None, None]:
        """Admit or refuse each thing on a page; yield where a turn is over."""
        for item in page:
            if self.is_full:
                return
            problem = _problem(item, self._kind)
            if problem is not None or not is_object(item):
                self._refuse(problem or f"A {self._kind.noun} is not an object")
                if self._turn.is_over(REFUSING):
                    yield
                continue
            key = item[self._kind.key]
            if self._turn.is_over(RULING, cleaned=READ * extent(key)):
                yield
            if self._allows(key):
                yield from self._admit(key, item)
            else:
                self._withhold(key)

    def end(self, sentence: str) -> None:
        """Want no more of the listing, and say why."""
        self._endings.append(sentence)
        self.is_full = True

    def _refuse(self, sentence: str) -> None:
        """Note what was wrong, of too many only how many."""
        if len(self._refused) < MAX_REFUSALS:
            self._refused.append(sentence)
        else:
            self._untold += 1

    def _withhold(self, key: str) -> None:
        if len(self.withheld) >= MAX_WITHHELD and key not in self.withheld:
            noun = self._kind.noun
            self.end(
                f"It lists more than {MAX_WITHHELD:,} {noun}s that are not allowed; "
                "the rest is left out"
            )
        else:
            self.withheld[key] = None

    def _admit(self, key: str, item: JsonObject) -> Generator[None, None, None]:
        size = yield from measured(item, self._turn)
        if size.problem is not None:
            self._refuse(f"`{clean(key)[:80]}` has a definition {size.problem}")
        elif key in self._definitions:
            self._refuse(f"`{clean(key)}` is listed twice; the first is kept")
        elif len(self._definitions) >= MAX_TOOLS:
            self.end(f"It lists more than {MAX_TOOLS:,} {self._kind.noun}s; the rest is left out")
        elif self._characters + size.characters > MAX_LISTING_CHARACTERS:
            self.end(
                f"It lists more than {MAX_LISTING_CHARACTERS:,} characters; the rest is left out"
            )
        elif self._nodes + size.nodes > MAX_LISTING_NODES:
            self.end(f"It lists more than {MAX_LISTING_NODES:,} values; the rest is left out")
        else:
            self._characters += size.characters
            self._nodes += size.nodes
            definition = yield from cleaned(item, self._turn)
            if self._kind is TOOL:
                definition.setdefault("inputSchema", {"type": "object", "properties": {}})
            self._definitions[key] = definition


def take_in(server: ServerConfig, listing: Iterable[object]) -> tuple[list[ToolEntry], list[str]]:
    """Make entries of a server's listing; also say what of it was refused."""
    return entries_of(server, admit(listing, allows=server.allows))


def entries_of(server: ServerConfig, admitted: Admitted) -> tuple[list[ToolEntry], list[str]]:
    """Make entries of the tools that were admitted; also say what was refused."""
    named, refused = finished(named_tools(server, admitted))
    entries, left = grant(server, [entry_of(server, name, tool) for name, tool in named])
    return entries, [*refused, *left]


def named_tools(
    server: ServerConfig, admitted: Admitted
) -> Generator[None, None, tuple[list[tuple[ToolName, JsonObject]], list[str]]]:
    """Name the tools that were admitted, and say what was refused; yield where a turn is over."""
    called, clashes = _called(server, [tool["name"] for tool in admitted.definitions])
    others = Leads(server.others)
    names = yield from settle(server.prefix, called.values(), server.reserved, others)
    named = [
        (names[name], tool)
        for tool in admitted.definitions
        if (name := called[tool["name"]]) in names
    ]
    return named, [*admitted.refused, *clashes, *_imitations(server, called.values(), names)]


def _called(server: ServerConfig, own_names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return what each tool is called here, and what could not be called as it should."""
    if not server.rename:
        return dict(zip(own_names, own_names, strict=True)), []
    taken = set(own_names)
    called: dict[str, str] = {}
    clashes: list[str] = []
    for own_name in own_names:
        name = server.renamed(own_name)
        if name != own_name and name in taken:
            clashes.append(f"`{own_name}` cannot be called `{name}`, as another of its tools is")
            name = own_name
        taken.add(name)
        called[own_name] = name
    return called, clashes[:MAX_REFUSALS]


def _imitations(
    server: ServerConfig, own_names: Iterable[str], names: Collection[str]
) -> Iterator[str]:
    """Say of each that has no name whose it would have had."""
    leads = Leads(server.others)
    for own_name in islice((each for each in own_names if each not in names), MAX_REFUSALS):
        other = leads.claims(plain_name(own_name))
        if other is None:
            yield f"`{own_name}` imitates a tool of the aggregator"
        else:
            whose = f"has the name of a tool of `{other}`"
            yield f"`{own_name}` {whose}; give `{server.name}` a `prefix`"


def entry_of(server: ServerConfig, name: ToolName, tool: JsonObject) -> ToolEntry:
    """Make an entry of one tool, before its server's wishes for it are granted."""
    meta = as_object(tool.get("_meta"))
    own_name = tool["name"]
    annotations = as_object(tool.get("annotations"))
    read_only = annotations.get("readOnlyHint") is True and server.trust_annotations
    put_right: dict[str, Any] = {}
    # What is put right is still found by what was wrong.
    hints = [server.hint(own_name), meta.get("anthropic/searchHint")]
    if (called := server.renamed(own_name)) != own_name:
        put_right["name"] = called
        hints.append(own_name)
    if (described := server.description_of(own_name)) is not None:
        put_right["description"] = described
        hints.append(tool.get("description"))
    if not read_only and server.reads_only(own_name):
        read_only = True
        said = {key: each for key, each in annotations.items() if key != "destructiveHint"}
        put_right["annotations"] = {**said, "readOnlyHint": True}
    return ToolEntry(
        name=name,
        server=server.name,
        tool=tool,
        always_load=server.loads_always(own_name),
        hint=" ".join(hint for hint in hints if isinstance(hint, str) and hint),
        read_only=read_only,
        put_right=put_right,
    )


def unmatched(server: ServerConfig, intake: Intake) -> Iterator[str | None]:
    """Say what a server's configuration asks for tools that it does not list, step by step.

    Of a listing that is empty or was cut short nothing is known.
    """
    admitted = (tool["name"] for tool in intake.admitted.definitions)
    names = dict.fromkeys([*admitted, *intake.withheld])
    if intake.is_full or not names:
        return
    told = 0
    for found in server.unmatched(names):
        told += found is not None
        if told > MAX_REFUSALS:
            return
        yield _unmatched(*found, names) if found else None


def _unmatched(key: str, entry: str, names: Iterable[str]) -> str:
    # Most configurations are right, and a start does not wait for what they do not need.
    from difflib import get_close_matches  # noqa: PLC0415 - see above

    problem = f"`{entry}` in `{key}` matches none of its tools"
    close = get_close_matches(entry, list(islice(names, MAX_COMPARED)), 1)
    return f"{problem}; did you mean `{close[0]}`?" if close else problem


def prompts_of(
    server: ServerConfig, admitted: Admitted
) -> tuple[tuple[PromptEntry, ...], tuple[str, ...]]:
    """Make entries of the prompts that were admitted; also say what was refused."""
    return finished(named_prompts(server, admitted))


def named_prompts(
    server: ServerConfig, admitted: Admitted
) -> Generator[None, None, tuple[tuple[PromptEntry, ...], tuple[str, ...]]]:
    """Do the same; yield where a turn is over."""
    own_names = [prompt["name"] for prompt in admitted.definitions]
    names = yield from settle(server.prefix, own_names, RESERVED, Leads(server.others))
    entries = tuple(
        PromptEntry(names[prompt["name"]], server.name, prompt)
        for prompt in admitted.definitions
        if prompt["name"] in names
    )
    return entries, (*admitted.refused, *_imitations(server, own_names, names))


def resources_of(
    server: ServerConfig, admitted: Admitted
) -> tuple[tuple[ResourceEntry, ...], tuple[str, ...]]:
    """Make entries of the resources or templates that were admitted; also say what was refused."""
    entries = tuple(ResourceEntry(server.name, resource) for resource in admitted.definitions)
    return entries, admitted.refused


def skills_among(resources: Iterable[ResourceEntry]) -> Iterator[JsonObject]:
    """Yield an entry for each resource that is, by its URI, the main file of a skill.

    So servers offer them that do not know the extension; nothing but a text to read follows.
    """
    for entry in resources:
        uri, resource = entry.own_uri, entry.resource
        if uri.startswith("skill://") and uri.endswith("/SKILL.md"):
            said = {"name": resource.get("name"), "description": resource.get("description")}
            yield {"uri": uri, "frontmatter": said, "resources": "dynamic"}


def skills_of(
    server: ServerConfig, admitted: Admitted
) -> tuple[tuple[SkillEntry, ...], tuple[str, ...]]:
    """Make entries of the skills that were admitted; also say what was refused."""
    entries = [SkillEntry(server.name, skill) for skill in admitted.definitions]
    kept = [entry for entry in entries if _is_skill(entry)]
    odd = len(entries) - len(kept)
    told = (f"{odd} of its skills are not the `SKILL.md` of a directory",) if odd else ()
    return tuple(kept), (*admitted.refused, *told)


def _is_skill(entry: SkillEntry) -> bool:
    """Whether a skill is addressed, and lists its files, as the extension has it."""
    is_addressed = entry.own_uri.endswith("/SKILL.md") and "://" in entry.own_uri
    return is_addressed and (entry.files is not None or entry.skill.get("resources") == "dynamic")


def admit(
    listing: Iterable[object],
    *,
    allows: Callable[[str], bool] = lambda _: True,
    kind: Kind = TOOL,
) -> Admitted:
    """Sort out what of a listing can be used, and clean that."""
    intake = Intake(kind, allows)
    for item in listing:
        intake.add(item)
    return intake.admitted


def _problem(tool: object, kind: Kind) -> str | None:
    """Say why something listed cannot be used, if it cannot."""
    if not is_object(tool):
        return f"A {kind.noun} is not an object"
    name = tool.get(kind.key)
    # No more of a name is looked at than can be one.
    plain = clean(name[: kind.max_key]) if isinstance(name, str) else ""
    if not isinstance(name, str) or not plain.strip():
        return f"A {kind.noun} has no {kind.key}"
    shown = plain[:80]
    if plain != name:
        return (
            f"`{shown}` has a {kind.key} with hidden characters "
            f"or of more than {kind.max_key} characters"
        )
    if extent(name) > SPELT_OUT * kind.max_key:
        return f"`{shown}` has a {kind.key} of signs that stand for too many characters"
    if not isinstance(tool.get("inputSchema", {}), Mapping):
        return f"`{shown}` has an input schema that is not an object"
    return None
