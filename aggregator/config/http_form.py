"""The keys of `http` in `servers.yaml`, and the value they make."""

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from aggregator.config.base_form import BaseForm, Seldom, Words, problem
from aggregator.config.http import SCOPE, AccessRule, CallLimits, Http, Issuer, Replicas
from aggregator.config.notation import Globs, ToolGlobs
from aggregator.config.profile import Profile
from aggregator.config.quantities import address_fault, is_http, is_store
from aggregator.config.rules import EVERYTHING

MAX_PER_MINUTE = 10_000
MAX_IN_FLIGHT = 10_000
MAX_RULES = 200

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
"""What a scope may be, as OAuth has it."""
_HERE = ("localhost", "127.0.0.1", "::1")


def _address(value: str) -> str:
    # Whoever asks for another one is not told of what is for this machine alone.
    schemes = ("http", "https") if value.lower().startswith("http://") else ("https",)
    if fault := address_fault(value, schemes):
        raise problem(fault)
    parts = urlsplit(value)
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise problem("must begin with https://, since whoever is in between could let in anybody")
    if parts.query or parts.fragment or parts.username is not None:
        raise problem("must be an address without `?`, `#` and `@`")
    return value


def _store(value: str) -> str:
    if not is_store(value):
        raise problem("must be a `redis://…` or `rediss://…` address")
    return value


def _scopes(value: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(scope for words in value for scope in words.split()))
    if not found or not all(map(_SCOPE.fullmatch, found)):
        raise problem("must be one scope, or several that are needed together")
    return found


Address = Annotated[str, AfterValidator(_address)]
Scopes = Annotated[Words, AfterValidator(_scopes)]


class AccessForm(BaseForm):
    """What whoever has a scope sees: a profile, or what is written here."""

    scope: Scopes = Field(
        description="The scope that is needed; if there are several, all of them."
    )
    profile: str | None = Field(None, description="The profile to show.")
    servers: Globs | None = Field(None, description="The servers it shows, as in a profile.")
    allow: ToolGlobs | None = Field(None, description="The tools it shows, as in a profile.")
    deny: ToolGlobs = Field((), description="Tools it does not show, whatever `allow` says.")
    read_only: bool = Field(
        False, description="Whether it shows only tools that are known to change nothing."
    )


def _rule(form: AccessForm) -> AccessForm:
    narrows = form.servers is not None or form.allow is not None or form.deny or form.read_only
    if form.profile is not None and narrows:
        raise problem("has a `profile`, which says all there is to say of what is seen")
    if form.profile is None and form.servers is None and form.allow is None:
        raise problem("does not say what it shows: write `profile`, `servers` or `allow`")
    return form


class HttpForm(BaseForm):
    """Who may come in over HTTP, and how much they may ask."""

    issuer: Address | None = Field(
        None, description="Who issues the tokens (JWT), written exactly as in the tokens."
    )
    audience: Words = Field((), description="The audience that a token must have.")
    resource: Address | None = Field(
        None, description="The address of `/mcp` as clients know it; by default the `audience`."
    )
    ca_file: str | None = Field(
        None, description="Certificates to trust for the issuer, instead of the system's."
    )
    access: tuple[Annotated[AccessForm, AfterValidator(_rule)], ...] = Field(
        (),
        max_length=MAX_RULES,
        description="What each `scope` may see; the first rule that matches applies.",
    )
    local_token: bool = Field(
        False,
        description="Whether to accept the token of `serve --http` besides those of the issuer.",
    )
    max_calls_per_minute: int | None = Field(
        None, ge=1, le=MAX_PER_MINUTE, description="Calls per minute for each identity."
    )
    max_calls_in_flight: int | None = Field(
        None, ge=1, le=MAX_IN_FLIGHT, description="Concurrent calls for each identity."
    )
    state_key: str | None = Field(
        None,
        min_length=1,
        description="The file with the key that several replicas share, as with `--state-key`.",
    )
    state: Annotated[str, AfterValidator(_store)] | None = Field(
        None,
        description="The Redis or Valkey that they share, as with `--state`: `redis://…`.",
    )


def checked(form: HttpForm) -> HttpForm:
    """Refuse what cannot be meant as it is written."""
    if form.issuer is None:
        if form.access or form.audience or form.resource or form.ca_file or form.local_token:
            raise problem("says who may come in, but has no `issuer` to say who they are")
        return form
    if not form.audience or not all(form.audience):
        raise problem("has an `issuer` but no `audience`: tokens for others would open this door")
    if form.resource is None and not is_http(form.audience[0]):
        raise problem("needs `resource`, the address of `/mcp`, since `audience` is none")
    if not form.access:
        raise problem("has an `issuer` but no `access`, so that nobody would be let in")
    seen: set[frozenset[str]] = set()
    for each in form.access:
        if any(known <= frozenset(each.scope) for known in seen):
            scope = " ".join(each.scope)
            raise problem(f"has a rule for `{scope}` that never holds, since one before it does")
        seen.add(frozenset(each.scope))
    return form


Door = Annotated[HttpForm, Seldom(HttpForm), AfterValidator(checked)]


def unknown_profile(form: HttpForm, profiles: Collection[str]) -> tuple[int, str] | None:
    """Return the place and the name of a profile that a rule names and the file does not have."""
    named = ((at, each.profile) for at, each in enumerate(form.access) if each.profile is not None)
    return next(((at, name) for at, name in named if name not in profiles), None)


def http_of(form: HttpForm, resolved: Callable[[str], Path]) -> Http:
    """Return the value of a form, with the paths in it resolved."""
    limits = CallLimits(form.max_calls_per_minute, form.max_calls_in_flight)
    key = None if form.state_key is None else resolved(form.state_key)
    replicas = Replicas(key, form.state)
    if form.issuer is None:
        return Http(limits=limits, replicas=replicas)
    views = {each.name: each for each in map(_view, form.access) if each is not None}
    return Http(
        Issuer(
            form.issuer,
            form.audience,
            (form.resource or form.audience[0]).rstrip("/"),
            None if form.ca_file is None else resolved(form.ca_file),
            tuple(map(_access, form.access)),
        ),
        form.local_token,
        limits,
        views,
        replicas,
    )


def _view(form: AccessForm) -> Profile | None:
    """Return what a rule shows by itself."""
    if form.profile is not None:
        return None
    servers, allow = form.servers or EVERYTHING, form.allow or EVERYTHING
    is_narrow = servers != EVERYTHING or allow != EVERYTHING
    return Profile(
        _name(form),
        servers=servers,
        allow=allow,
        deny=form.deny,
        read_only=form.read_only,
        skills=not is_narrow,
    )


def _access(form: AccessForm) -> AccessRule:
    view = _view(form)
    if view is None:
        return AccessRule(form.scope, form.profile or "")
    is_wide = view.shows_all and view.servers == EVERYTHING
    return AccessRule(form.scope, view.name, is_wide)


def _name(form: AccessForm) -> str:
    return SCOPE + " ".join(form.scope)
