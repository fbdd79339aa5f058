"""Who may come in over HTTP, as `servers.yaml` says it."""

import pytest

from aggregator.config.http import (
    AccessRule,
    CallLimits,
    Entry,
    Http,
    Issuer,
    Lacking,
    Replicas,
    entry,
)
from aggregator.config.profile import Profile, for_others
from tests.config.reading import PATH, config_of, refusal, server_of

ISSUER = "issuer: https://login.example.com\naudience: https://tools.example.com/mcp"
RULE = "access: [{scope: tools.all, allow: '*'}]"


def text_of(keys: str) -> str:
    indented = "\n".join(f"  {line}" for line in keys.splitlines())
    return f"servers: {{}}\nprofiles: {{reading: {{readOnly: true}}}}\nhttp:\n{indented}\n"


def http_of(keys: str) -> Http:
    return config_of(text_of(keys)).settings.http


def test_without_a_word_nobody_is_asked_who_they_are() -> None:
    http = config_of("servers: {}").settings.http

    assert http == Http()
    assert http.local_token


def test_an_issuer_is_believed_for_what_rules_say() -> None:
    http = http_of(
        f"{ISSUER}\ncaFile: ca.pem\nmaxCallsPerMinute: 60\nmaxCallsInFlight: 4\n"
        "access:\n- {scope: tools.read, profile: reading}\n"
        "- {scope: tools.git tools.write, servers: [github], deny: ['*delete*']}\n"
        "- {scope: [tools.all], allow: '*'}"
    )

    git = "scope:tools.git tools.write"
    assert http.issuer == Issuer(
        "https://login.example.com",
        ("https://tools.example.com/mcp",),
        "https://tools.example.com/mcp",
        PATH.parent / "ca.pem",
        (
            AccessRule(("tools.read",), "reading"),
            AccessRule(("tools.git", "tools.write"), git),
            AccessRule(("tools.all",), "scope:tools.all", is_wide=True),
        ),
    )
    assert http.issuer is not None
    assert http.issuer.scopes == ("tools.read", "tools.git", "tools.write", "tools.all")
    assert http.views[git] == Profile(git, servers=("github",), deny=("*delete*",), skills=False)
    assert http.limits == CallLimits(60, 4)
    assert not http.local_token


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("issuer: https://a.example", "no `audience`"),
        (ISSUER, "nobody would be let in"),
        (RULE, "no `issuer`"),
        ("localToken: true", "no `issuer`"),
        (f"issuer: http://a.example\naudience: x\n{RULE}", "must begin with https://"),
        (f"issuer: a.example\naudience: x\n{RULE}", "must begin with https://"),
        (f"issuer: https://a:99999\naudience: x\n{RULE}", "from 1 to 65535 as its port"),
        (f"issuer: https://a.example?x=1\naudience: x\n{RULE}", "without `?`"),
        (f"issuer: https://a.example\naudience: tools\n{RULE}", "needs `resource`"),
        ("state: https://store.example.com", "must be a `redis://…`"),
        ("state: redis://:secret@host:port/0", "must be a `redis://…`"),
        ("stateKey: ''", "stateKey"),
        (f"{ISSUER}\naccess: [{{scope: a}}]", "does not say what it shows"),
        (f"{ISSUER}\naccess: [{{allow: '*'}}]", "scope"),
        (f"{ISSUER}\naccess: [{{scope: '', allow: '*'}}]", "must be one scope"),
        (f"{ISSUER}\naccess: [{{scope: 'a\"b', allow: '*'}}]", "must be one scope"),
        (f"{ISSUER}\naccess: [{{scope: a, profile: reading, allow: x}}]", "has a `profile`"),
        (f"{ISSUER}\naccess: [{{scope: a, profile: raeding}}]", "names no profile: `raeding`"),
        (
            f"{ISSUER}\naccess: [{{scope: a, allow: x}}, {{scope: a b, allow: y}}]",
            "never holds",
        ),
        ("maxCallsPerMinute: 0", "maxCallsPerMinute"),
        ("maxCallsInFlight: many", "maxCallsInFlight"),
    ],
)
def test_what_cannot_be_meant_is_refused(keys: str, problem: str) -> None:
    assert problem in str(refusal(text_of(keys)))


def test_an_audience_that_is_no_address_goes_with_the_address() -> None:
    resource = "resource: https://tools.example.com/mcp/"
    http = http_of(f"issuer: https://a.example\naudience: [api, b]\n{resource}\n{RULE}")

    assert http.issuer is not None
    assert http.issuer.audiences == ("api", "b")
    assert http.issuer.resource == "https://tools.example.com/mcp"


READING, GIT = AccessRule(("read",), "reading"), AccessRule(("git", "write"), "scope:git write")
WIDE = AccessRule(("all",), "scope:all", is_wide=True)
RULES = Issuer("i", ("a",), "r", access=(READING, GIT, WIDE))


@pytest.mark.parametrize(
    ("scopes", "asked", "found"),
    [
        ("read", None, Entry("reading")),
        ("all read", None, Entry("reading")),
        ("all", None, Entry("scope:all")),
        ("git write", None, Entry("scope:git write")),
        ("git", None, Lacking(("read",))),
        ("", None, Lacking(("read",))),
        ("read", "reading", Entry("reading")),
        ("all", "reading", Entry("reading")),
        ("all", "other", Entry("other")),
        ("read", "other", Lacking(("all",))),
        ("git write", "reading", Lacking(("read",))),
    ],
)
def test_the_first_rule_that_fits_holds(
    scopes: str, asked: str | None, found: Entry | Lacking
) -> None:
    assert entry(RULES, scopes.split(), asked) == found


def test_where_no_rule_leads_there_is_nothing() -> None:
    assert entry(RULES._replace(access=(READING, GIT)), ["read"], "other") is None


def test_a_rule_that_is_gone_shows_nothing() -> None:
    settings = config_of(text_of(f"{ISSUER}\n{RULE}")).settings

    assert settings.view("scope:tools.all").shows_all
    assert settings.view("scope:gone").servers == ()
    assert settings.view(for_others("gone")).servers == ()
    assert settings.view(for_others("reading")).read_only
    assert not settings.view(for_others(None)).personal


@pytest.mark.parametrize(
    ("keys", "is_personal"),
    [
        ("url: https://a.example/mcp", True),
        ("url: https://a.example/mcp\noauth: {clientId: x}", True),
        ("url: https://a.example/mcp\nshared: true", False),
        ("url: https://a.example/mcp\noauth: false", False),
        (
            "url: https://a.example/mcp\noauth: {grant: client_credentials, clientId: x}",
            False,
        ),
        ("url: https://a.example/mcp\nheaders: {Authorization: Bearer x}", False),
        ("command: x", False),
    ],
)
def test_a_server_is_personal_that_may_have_the_login_of_a_person(
    keys: str, *, is_personal: bool
) -> None:
    assert server_of(keys).is_personal is is_personal


def test_whether_a_server_is_shared_is_changed_while_it_runs() -> None:
    one, other = server_of("url: https://a.example"), server_of("url: https://a.example\nshared: 1")

    assert one != other
    assert one.is_reached_like(other)


def test_a_profile_has_limits_of_its_own() -> None:
    text = "servers: {}\nprofiles: {slow: {maxCallsPerMinute: 6, maxCallsInFlight: 1}}"
    profile = config_of(text).settings.profiles["slow"]

    assert (profile.max_calls_per_minute, profile.max_calls_in_flight) == (6, 1)


def test_what_replicas_share_is_said_with_and_without_an_issuer_and_shown_to_nobody() -> None:
    keys = "stateKey: keys/state\nstate: valkeys://:secret@store.example.com/0"
    shared = Replicas(PATH.parent / "keys/state", "valkeys://:secret@store.example.com/0")

    for http in (http_of(keys), http_of(f"{ISSUER}\n{RULE}\n{keys}")):
        assert http.replicas == shared
        assert "secret" not in repr(http)
