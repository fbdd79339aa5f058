"""What a server offers, each as its server has it and as clients see it."""

import json
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple

from aggregator.basics.frozen import frozen
from aggregator.basics.json import JsonObject, as_object, is_array
from aggregator.names import Forms, ServerName, ToolName


@frozen(slots=False)
class ToolEntry:
    """One callable tool."""

    name: ToolName
    """The name clients see."""
    server: ServerName
    tool: JsonObject
    """The definition as its server sent it, cleaned of what must not be shown."""
    always_load: bool = False
    hint: str = ""
    """Extra words to find the tool by; never shown."""
    read_only: bool = False
    """Whether it is known that the tool changes nothing."""
    put_right: JsonObject = field(default_factory=dict[str, Any])
    """What the configuration says in the place of parts of the definition."""

    @cached_property
    def characters(self) -> int:
        """How long its definition is; what it costs a model follows from that."""
        return len(self.name) + len(self.description) + len(self.schema_text)

    @cached_property
    def forms(self) -> Forms:
        """The ways in which its name may be written."""
        return Forms.of(self.name, self.server, self.own_name)

    @cached_property
    def shown(self) -> JsonObject:
        """The definition as clients list it, which is one object however many of them do."""
        return {**self.tool, **self.put_right, "name": self.name}

    @property
    def own_name(self) -> str:
        """The name the tool has on its server."""
        return self.tool["name"]

    @property
    def description(self) -> str:
        """What the tool says of itself."""
        description = self.put_right.get("description") or self.tool.get("description")
        return description if isinstance(description, str) else ""

    @property
    def schema_text(self) -> str:
        """The same in as few characters as JSON has it."""
        return json.dumps(
            self.input_schema, ensure_ascii=False, separators=(",", ":"), default=dict
        )

    @property
    def input_schema(self) -> JsonObject:
        """The JSON Schema of the tool's arguments."""
        return as_object(self.tool.get("inputSchema"))


@frozen
class PromptEntry:
    """One prompt."""

    name: str
    """The name clients see."""
    server: ServerName
    prompt: JsonObject
    """The definition as its server sent it, cleaned of what must not be shown."""

    @property
    def own_name(self) -> str:
        """The name the prompt has on its server."""
        return self.prompt["name"]


@frozen
class ResourceEntry:
    """One resource, or a template of many."""

    server: ServerName
    resource: JsonObject
    """The definition as its server sent it, cleaned of what must not be shown."""

    @property
    def own_uri(self) -> str:
        """The URI, or the template of URIs, that its server knows."""
        uri = self.resource.get("uri")
        return uri if isinstance(uri, str) else self.resource["uriTemplate"]


class SkillEntry(NamedTuple):
    """One skill that a server offers as resources."""

    server: ServerName
    skill: JsonObject
    """Its entry as its server sent it, cleaned of what must not be shown."""

    @property
    def own_uri(self) -> str:
        """The URI of its main file."""
        return self.skill["uri"]

    @property
    def path(self) -> str:
        """What tells it from other skills of its server, for people and models."""
        whole = self.own_uri.removeprefix("skill://")
        return whole.removesuffix("/SKILL.md")

    @property
    def root(self) -> str:
        """What the URIs of all its files begin with."""
        return self.own_uri.removesuffix("SKILL.md")

    @property
    def files(self) -> Mapping[str, JsonObject] | None:
        """What is said of each of its files, by the path inside; `None` if not said."""
        listed = self.skill.get("resources")
        if not is_array(listed):
            return None
        entries = {str(as_object(each).get("uri")): as_object(each) for each in listed}
        root = self.root
        return {
            uri.removeprefix(root): each for uri, each in entries.items() if uri.startswith(root)
        }

    @property
    def description(self) -> str:
        """What it says it is for."""
        said = as_object(self.skill.get("frontmatter")).get("description")
        return said if isinstance(said, str) else ""


class Addresses(NamedTuple):
    """Resources, or templates of them, by the URI that their server knows."""

    entries: Mapping[str, ResourceEntry]
    """Of two with the same URI, the first."""
    schemes: frozenset[str]
    """What their URIs begin with, up to the first colon, in small letters."""

    @classmethod
    def of(cls, entries: tuple[ResourceEntry, ...]) -> "Addresses":
        """Put the entries of one server in order."""
        found = {each.own_uri: each for each in reversed(entries)}
        in_order = {each.own_uri: found[each.own_uri] for each in entries}
        return cls(in_order, frozenset(uri.partition(":")[0].casefold() for uri in in_order))


@frozen(slots=False)
class Offers:
    """What a server offers besides tools."""

    prompts: tuple[PromptEntry, ...] = ()
    resources: tuple[ResourceEntry, ...] = ()
    templates: tuple[ResourceEntry, ...] = ()
    skills: tuple[SkillEntry, ...] = ()
    reads: bool = False
    """Whether it has resources at all, listed or not."""
    completes: bool = False
    """Whether it completes arguments."""
    tasks: bool = False
    """Whether it may answer calls with tasks."""
    unlisted: frozenset[str] = frozenset()
    """The kinds of them that it has and that are not known yet."""

    @cached_property
    def resource_addresses(self) -> Addresses:
        """Its resources by URI: once for each listing, however often all servers are looked at."""
        return Addresses.of(self.resources)

    @cached_property
    def template_addresses(self) -> Addresses:
        """Its templates in the same way."""
        return Addresses.of(self.templates)


NOTHING_BESIDES = Offers()
