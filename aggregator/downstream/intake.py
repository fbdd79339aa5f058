"""What of a server's listing is accepted, cleaned of what must not be shown.

Every byte of a listing is untrusted. A tool that cannot be used or that is out of all proportion
is refused and reported; the others are not touched by it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from aggregator.catalog import PromptEntry, ResourceEntry, ToolEntry
from aggregator.config import ServerConfig
from aggregator.json import JsonObject, as_object, is_object
from aggregator.names import ToolName, qualify

MAX_TOOLS = 5_000
"""Tools kept of one server."""
MAX_LISTING_CHARACTERS = 16 * 1024 * 1024
"""Characters that all definitions of one listing may have together."""
MAX_REFUSALS = 20
"""Refused definitions of one listing that are told of one by one."""
MAX_COMPARED = 500
"""Names that one which matches nothing is compared with."""
MAX_DEFINITION_CHARACTERS = 256 * 1024
"""Characters a tool's definition may have, keys and values together."""
MAX_DEPTH = 64
"""Levels a tool's definition may be nested."""
MAX_NODES = 20_000
"""Values a tool's definition may hold."""
MAX_DESCRIPTION = 16 * 1024
"""Characters kept of a description."""
MAX_NAME = 256
"""Characters a tool's own name may have."""
MAX_URI = 4096
"""Characters the URI of a resource may have."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""ANSI control sequences: colours, cursor movement, window titles, links."""

_KEPT_CONTROLS = frozenset("\n\t\r")

_JOINERS = frozenset("\u200c\u200d")
"""Zero-width characters that Indic scripts, Arabic and emoji are written with."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing that servers list."""

    noun: str
    key: str = "name"
    """What tells one from another."""
    max_key: int = MAX_NAME


TOOL = Kind("tool")
PROMPT = Kind("prompt")
RESOURCE = Kind("resource", "uri", MAX_URI)
TEMPLATE = Kind("resource template", "uriTemplate", MAX_URI)


@dataclass(frozen=True, slots=True)
class Admitted:
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
        self._refused: list[str] = []
        self._untold = 0
        self._endings: list[str] = []
        self.withheld: list[str] = []
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
        if self.is_full:
            return
        problem = _problem(item, self._kind)
        if problem is not None or not is_object(item):
            self._refuse(problem or f"A {self._kind.noun} is not an object")
        elif self._allows(item[self._kind.key]):
            self._admit(item[self._kind.key], item)
        else:
            self.withheld.append(item[self._kind.key])

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

    def _admit(self, key: str, item: JsonObject) -> None:
        size, problem = _measured(item)
        if problem is not None:
            self._refuse(f"`{clean(key)[:80]}` has a definition {problem}")
        elif key in self._definitions:
            self._refuse(f"`{clean(key)}` is listed twice; the first is kept")
        elif len(self._definitions) >= MAX_TOOLS:
            self.end(f"It lists more than {MAX_TOOLS:,} {self._kind.noun}s; the rest is left out")
        elif self._characters + size > MAX_LISTING_CHARACTERS:
            self.end(
                f"It lists more than {MAX_LISTING_CHARACTERS:,} characters; the rest is left out"
            )
        else:
            self._characters += size
            self._definitions[key] = _cleaned_definition(item, self._kind)


def take_in(server: ServerConfig, listing: Iterable[object]) -> tuple[list[ToolEntry], list[str]]:
    """Make entries of a server's listing; also say what of it was refused."""
    return entries_of(server, admit(listing, allows=server.allows))


def entries_of(server: ServerConfig, admitted: Admitted) -> tuple[list[ToolEntry], list[str]]:
    """Make entries of the tools that were admitted; also say what was refused."""
    named, refused = named_tools(server, admitted)
    return [entry_of(server, name, tool) for name, tool in named], refused


def named_tools(
    server: ServerConfig, admitted: Admitted
) -> tuple[list[tuple[ToolName, JsonObject]], list[str]]:
    """Name the tools that were admitted; also say what was refused."""
    names = qualify(server.prefix, [tool["name"] for tool in admitted.definitions])
    named = [(names[tool["name"]], tool) for tool in admitted.definitions if tool["name"] in names]
    imitations = [
        f"`{tool['name']}` imitates a tool of the aggregator"
        for tool in admitted.definitions
        if tool["name"] not in names
    ]
    return named, [*admitted.refused, *imitations[:MAX_REFUSALS]]


def entry_of(server: ServerConfig, name: ToolName, tool: JsonObject) -> ToolEntry:
    """Make an entry of one tool."""
    meta = as_object(tool.get("_meta"))
    own_name = tool["name"]
    wishes = server.honour_always_load and meta.get("anthropic/alwaysLoad") is True
    hints = (server.hint(own_name), meta.get("anthropic/searchHint"))
    read_only = as_object(tool.get("annotations")).get("readOnlyHint") is True
    return ToolEntry(
        name=name,
        server=server.name,
        tool=tool,
        always_load=wishes or server.loads_always(own_name),
        hint=" ".join(hint for hint in hints if isinstance(hint, str) and hint),
        read_only=read_only and server.trust_annotations,
    )


def unmatched(server: ServerConfig, intake: Intake) -> tuple[str, ...]:
    """Say what a server's configuration asks for tools that it does not list.

    Of a listing that is empty or was cut short nothing is known.
    """
    admitted = (tool["name"] for tool in intake.admitted.definitions)
    names = dict.fromkeys([*admitted, *intake.withheld])
    if intake.is_full or not names:
        return ()
    found = islice(server.unmatched(names), MAX_REFUSALS)
    return tuple(_unmatched(key, entry, names) for key, entry in found)


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
    names = qualify(server.prefix, [prompt["name"] for prompt in admitted.definitions])
    entries = tuple(
        PromptEntry(names[prompt["name"]], server.name, prompt)
        for prompt in admitted.definitions
        if prompt["name"] in names
    )
    return entries, admitted.refused


def resources_of(
    server: ServerConfig, admitted: Admitted
) -> tuple[tuple[ResourceEntry, ...], tuple[str, ...]]:
    """Make entries of the resources or templates that were admitted; also say what was refused."""
    entries = tuple(ResourceEntry(server.name, resource) for resource in admitted.definitions)
    return entries, admitted.refused


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


def clean(text: str) -> str:
    """Remove what a person would not see and a model would: escapes, overrides, tags, controls."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(filter(_is_shown, _ESCAPES.sub("", text)))


def _is_shown(character: str) -> bool:
    if character in _KEPT_CONTROLS or character in _JOINERS:
        return True
    # Cc controls, Cf formats (bidirectional overrides, zero-width, tags), Co private use,
    # Cs lone surrogates, Cn unassigned: none of them is text.
    return unicodedata.category(character)[0] != "C" and not _is_selector(character)


def _is_selector(character: str) -> bool:
    """Whether this is one of the 240 supplementary variation selectors, used to smuggle bytes."""
    return "\U000e0100" <= character <= "\U000e01ef"


def _problem(tool: object, kind: Kind) -> str | None:
    """Say why something listed cannot be used, if it cannot."""
    if not is_object(tool):
        return f"A {kind.noun} is not an object"
    name = tool.get(kind.key)
    if not isinstance(name, str) or not clean(name).strip():
        return f"A {kind.noun} has no {kind.key}"
    shown = clean(name)[:80]
    if len(name) > kind.max_key or clean(name) != name:
        return (
            f"`{shown}` has a {kind.key} with hidden characters "
            f"or of more than {kind.max_key} characters"
        )
    if not isinstance(tool.get("inputSchema", {}), Mapping):
        return f"`{shown}` has an input schema that is not an object"
    return None


def _measured(tool: JsonObject) -> tuple[int, str | None]:
    """Count the characters of a definition, and say what is too much about it.

    Without recursion, since its depth is the server's choice.
    """
    nodes = characters = 0
    level: list[object] = [_without_description(tool)]
    for _depth in range(MAX_DEPTH):
        following: list[object] = []
        for value in level:
            characters += len(value) if isinstance(value, str) else 0
            following.extend(_children(value))
        nodes += len(following)
        if nodes > MAX_NODES or characters > MAX_DEFINITION_CHARACTERS:
            return characters, "that is too large"
        if not following:
            return characters, None
        level = following
    return characters, f"nested more than {MAX_DEPTH} levels deep"


def _without_description(tool: JsonObject) -> JsonObject:
    """Leave out the one text that is cut to size instead of being refused."""
    return {key: value for key, value in tool.items() if key != "description"}


def _children(value: object) -> Iterable[object]:
    if is_object(value):
        return [*value.keys(), *value.values()]
    return _items(value) if isinstance(value, list) else ()


def _cleaned_definition(tool: JsonObject, kind: Kind) -> JsonObject:
    cleaned: dict[str, Any] = _cleaned(tool)
    description = cleaned.get("description")
    if not isinstance(description, str):
        cleaned.pop("description", None)
    elif len(description) > MAX_DESCRIPTION:
        cleaned["description"] = description[:MAX_DESCRIPTION] + " […]"
    if kind is TOOL:
        cleaned.setdefault("inputSchema", {"type": "object", "properties": {}})
    return cleaned


def _cleaned(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """Clean every text of a definition whose depth has been measured."""
    if isinstance(value, str):
        return clean(value)
    if is_object(value):
        return {clean(key): _cleaned(each) for key, each in value.items()}
    return [_cleaned(each) for each in _items(value)] if isinstance(value, list) else value


def _items(value: Any) -> list[Any]:  # noqa: ANN401 - JSON has no narrower type
    return value
