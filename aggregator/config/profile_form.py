"""The keys of a profile in `servers.yaml`, and the value they make."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from aggregator.clients import SurfaceChoice
from aggregator.config import settings
from aggregator.config.base_form import BaseForm, Kinds, Seldom, Words, problem
from aggregator.config.http_form import MAX_IN_FLIGHT, MAX_PER_MINUTE
from aggregator.config.mode import ToolSearchMode
from aggregator.config.notation import AllOrSome, Globs, Mode, ResultTokens, ToolGlobs
from aggregator.config.profile import Profile
from aggregator.config.rules import EVERYTHING

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


def _profile_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise problem(
            "has a name that cannot stand in an address: use at most 64 letters, digits, `-`, `_` "
            "and `.`, and begin with a letter or digit"
        )
    return value


ProfileName = Annotated[str, AfterValidator(_profile_name)]


def _without_keys(value: object) -> object:
    return {} if value is None else value


class ProfileForm(BaseForm):
    """What one kind of client sees; the rest does not exist for it."""

    description: str = Field("", description="What the profile is for, in one line for people.")
    servers: Globs = Field(EVERYTHING, description="The servers it shows: names or globs.")
    allow: ToolGlobs = Field(
        EVERYTHING, description="The tools and prompts it shows: names or globs, as under `tools`."
    )
    deny: ToolGlobs = Field(
        (), description="Tools and prompts it does not show, whatever `allow` says."
    )
    read_only: bool = Field(
        False, description="Whether it shows only tools that are known to change nothing."
    )
    resources: bool = Field(
        True,
        description="Whether it shows resources and skills of the servers it shows completely.",
    )
    skills: bool | None = Field(
        None,
        description="Whether it shows the skills on this machine; by default, if neither "
        "`servers` nor `allow` is set.",
    )
    always_load: AllOrSome | None = Field(
        None, description="Tools shown without a search, instead of the servers' `alwaysLoad`."
    )
    clients: Words = Field(
        (),
        description="Clients it applies to, by their names for `install` or their own names; "
        "not a protection.",
    )
    tool_search: Mode | None = Field(None, description="As at the top, for this profile.")
    surface: SurfaceChoice | None = Field(None, description="As at the top, for this profile.")
    max_results: int | None = Field(
        None, ge=1, le=settings.MAX_RESULTS, description="As at the top, for this profile."
    )
    max_result_chars: int | None = Field(
        None, ge=1_000, le=1_000_000, description="As at the top, for this profile."
    )
    max_result_tokens: ResultTokens | None = Field(
        None, description="As at the top, for this profile."
    )
    max_loaded: int | None = Field(
        None, ge=1, le=10_000, description="As at the top, for this profile."
    )
    find: Kinds | None = Field(None, description="As at the top, for this profile.")
    max_calls_per_minute: int | None = Field(
        None,
        ge=1,
        le=MAX_PER_MINUTE,
        description="Calls per minute for each identity that connects over HTTP.",
    )
    max_calls_in_flight: int | None = Field(
        None,
        ge=1,
        le=MAX_IN_FLIGHT,
        description="Concurrent calls for each identity that connects over HTTP.",
    )


NamedProfile = Annotated[ProfileForm, Seldom(ProfileForm), BeforeValidator(_without_keys)]
"""A profile under its name, with nothing under it if it is to show everything."""


def profile_of(name: str, form: ProfileForm, tool_search: ToolSearchMode | None) -> Profile:
    """Return the value of a form; the environment may have said how tools are searched."""
    is_narrow = form.servers != EVERYTHING or form.allow != EVERYTHING
    values = form.model_dump(exclude={"skills", "tool_search"})
    skills = not is_narrow if form.skills is None else form.skills
    mode = None if form.tool_search is None else tool_search or form.tool_search
    return Profile(name, skills=skills, tool_search=mode, **values)
