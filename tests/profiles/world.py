"""Two aggregators: one that hides things by a profile, and one whose servers never had them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from aggregator.basics.eras import Era
from aggregator.config import Settings
from aggregator.config.http import SCOPE, Http
from aggregator.config.profile import Profile, for_others
from aggregator.downstream.transport import Connect
from aggregator.toolsearch.offers.skills import read_skills
from aggregator.upstream.server import Upstream
from aggregator.upstream.visitor import Visitor
from tests.peers import aggregating, never, until
from tests.raw import Dispatch, Json, RawServer

READING = Profile(
    "reading",
    servers=("notes", "docs"),
    allow=("notes__*", "docs__search_pages"),
    deny=("delete_*", "purge"),
    skills=False,
)
LOOSE = replace(READING, servers=("*",), allow=(*READING.allow, "vault__*", "ghost__*"))
"""The same, but for what is hidden because it may have somebody's login."""
RULE = f"{SCOPE}tools.read"
WHO = {"profile": "reading", "rule": RULE, "identity": for_others("reading")}
"""What hides the same: a profile, a rule for whoever logs in, and that somebody does not run us."""
NARROW = Visitor("narrow", "/narrow", 1, "reading")
BARE = Visitor("bare", "/narrow", 1)

SECRETS = ("delete", "purge", "vault", "gold", "reveal", "ghost", "hoard", "reindex", "draft")
"""Words that stand only in what is hidden."""

ERASED = {"note": {"type": "string", "description": "Which one to delete"}}


async def _answer(_context: Dispatch, params: Json) -> Json:
    return {"content": [{"type": "text", "text": f"did {params['name']}"}]}


async def _get(_context: Dispatch, params: Json) -> Json:
    text = {"type": "text", "text": f"Say {params['name']}"}
    return {"messages": [{"role": "user", "content": text}]}


async def _read(_context: Dispatch, params: Json) -> Json:
    if "gold" in params["uri"] or "draft" in params["uri"]:
        return {"contents": [{"uri": params["uri"], "text": "the hoard"}]}
    if params["uri"].startswith("note://"):
        return {"contents": [{"uri": params["uri"], "text": "a note"}]}
    raise MCPError(types.INVALID_PARAMS, "no such thing here")


async def _complete(_context: Dispatch, _params: Json) -> Json:
    return {"completion": {"values": ["milk"]}}


def _server(era: Era) -> RawServer:
    server = RawServer(era)
    server.handlers |= {
        "prompts/get": _get,
        "resources/read": _read,
        "completion/complete": _complete,
    }
    return server


def _tool(server: RawServer, name: str, **definition: Any) -> None:
    server.tool(name, _answer, **definition)


class World:
    """The servers behind an aggregator, with or without what is to be hidden."""

    def __init__(self, era: Era, *, has_all: bool, who: str = "profile") -> None:
        self.who = who
        self.notes, self.docs, self.vault = _server(era), _server(era), _server(era)
        self.has_all = has_all
        reads = {"readOnlyHint": True}
        _tool(self.notes, "read_note", description="Reads a note", annotations=reads)
        _tool(self.notes, "add_note", description="Adds a note")
        _tool(self.docs, "search_pages", description="Searches pages", annotations=reads)
        self.notes.prompts = [{"name": "daily", "description": "A note for each day"}]
        self.notes.resources = [{"uri": "note://1", "name": "first"}]
        self.notes.templates = [{"uriTemplate": "note://{id}", "name": "a note"}]
        if has_all:
            self._add_hidden()
        else:
            self.docs.capabilities = {
                key: value for key, value in self.docs.capabilities.items() if key != "resources"
            }

    def _add_hidden(self) -> None:
        schema = {"type": "object", "properties": ERASED}
        _tool(self.notes, "delete_note", description="Deletes a note", inputSchema=schema)
        self.notes.prompts.append({"name": "purge", "description": "How to delete everything"})
        _tool(self.docs, "reindex", description="Reindexes pages")
        self.docs.prompts = [{"name": "draft", "description": "Drafts a page"}]
        self.docs.resources = [{"uri": "docs://draft", "name": "draft"}]
        self.docs.templates = [{"uriTemplate": "docs://{page}", "name": "a draft"}]
        _tool(self.vault, "open_vault", description="Opens the vault")
        # Of a name that something has which is shown.
        _tool(self.vault, "read_note", description="Reads a note in the vault")
        self.vault.prompts = [{"name": "reveal", "description": "Reveals the hoard"}]
        self.vault.resources = [
            {"uri": "vault://gold", "name": "gold"},
            {"uri": "note://1", "name": "hoard"},
        ]
        self.vault.templates = [{"uriTemplate": "vault://{name}", "name": "hoard"}]

    @property
    def servers(self) -> dict[str, Connect]:
        """What the aggregator connects to; one of those that are hidden never comes."""
        hidden = {"vault": self.vault.connect, "ghost": never()} if self.has_all else {}
        # The first in the order of the configuration has a URI as it is.
        return {**hidden, "notes": self.notes.connect, "docs": self.docs.connect}

    @asynccontextmanager
    async def aggregated(self, skills: Path | None = None) -> AsyncGenerator[Upstream, None]:
        """Run the aggregator until all servers that ever come are there."""
        made = self._settings() if self.has_all else Settings()
        descriptions = {"notes": "Notes of a person", "docs": "Pages of a team"}
        options: dict[str, Any] = {
            name: {"description": text} for name, text in descriptions.items()
        }
        if self.has_all:
            options["vault"] = {"description": "The hoard"}
        if self.has_all and self.who == "identity":
            remote = {"type": "http", "url": "https://vault.example/mcp"}
            options |= {name: {**options.get(name, {}), **remote} for name in ("vault", "ghost")}
        async with aggregating(self.servers, made, is_shared=True, **options) as upstream:
            await _known(upstream, set(self.servers) - {"ghost"})
            if skills is not None:
                # They would be read in a thread, which no virtual clock waits for.
                upstream.fleet._show_skills(read_skills((skills,)).skills)  # pyright: ignore[reportPrivateUsage]
            yield upstream

    def _settings(self) -> Settings:
        """Return what hides the same, each in its own way."""
        if self.who == "rule":
            return Settings(http=Http(views={RULE: replace(READING, name=RULE)}))
        return Settings(profiles={"reading": LOOSE if self.who == "identity" else READING})


def written_skill(directory: Path) -> Path:
    """Write a skill, and return where it is."""
    skill = directory / "hoarding"
    skill.mkdir()
    text = "---\nname: hoarding\ndescription: How to add to the hoard\n---\nGold first.\n"
    (skill / "SKILL.md").write_text(text, encoding="utf-8")
    return skill


async def _known(upstream: Upstream, names: set[str]) -> None:
    fleet = upstream.fleet

    def is_known() -> bool:
        known = {name: state for name, state in fleet.now.catalog.known.items() if name in names}
        return len(known) == len(names) and not any(each.offers.unlisted for each in known.values())

    await until(is_known, lambda: fleet.changed)
