"""Profiles in `servers.yaml`."""

import pytest

from aggregator.config import check_profile
from aggregator.config.profile import Profile
from aggregator.config.rules import Whose
from aggregator.errors import ConfigError
from aggregator.names import ServerName
from tests.config.reading import config_of, refusal

GITHUB = Whose(ServerName("github"), "github")
NOTES = Whose(ServerName("my-notes"), "my_notes")


def profile_of(text: str, **environ: str) -> Profile:
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    read = config_of(f"servers: {{}}\nprofiles:\n  one:\n{indented}\n", **environ)
    return read.settings.profiles["one"]


def test_a_profile_says_what_is_seen_and_how() -> None:
    profile = profile_of(
        "servers: [github]\nallow: github__*\ndeny: ['*delete*']\nreadOnly: true\n"
        "alwaysLoad: github__get_*\nclients: claude-code\nsurface: relay\nmaxResults: 3\n"
        "maxResultChars: 4000\nmaxLoaded: 9\nfind: tools\nresources: false\nskills: true\n"
        "toolSearch: auto:20\ndescription: For reading"
    )

    assert profile == Profile(
        "one",
        "For reading",
        ("github",),
        ("github__*",),
        ("*delete*",),
        read_only=True,
        resources=False,
        skills=True,
        always_load=("github__get_*",),
        clients=("claude-code",),
        tool_search=profile.tool_search,
        surface="relay",
        max_results=3,
        max_result_chars=4000,
        max_loaded=9,
        find=("tool",),
    )
    assert str(profile.tool_search) == "auto:20"


def test_a_profile_without_keys_shows_everything() -> None:
    profile = config_of("servers: {}\nprofiles:\n  wide:\n").settings.profiles["wide"]

    assert profile == Profile("wide")
    assert profile.shows_all


@pytest.mark.parametrize("text", ["servers: notes", "allow: '*__get_*'"])
def test_where_only_something_is_named_skills_of_the_machine_are_not_in_it(text: str) -> None:
    assert not profile_of(text).skills
    assert profile_of(f"{text}\nskills: true").skills


def test_the_environment_says_of_all_profiles_how_tools_are_searched() -> None:
    text = "toolSearch: true"

    assert str(profile_of(text, AGGREGATOR_TOOL_SEARCH="false").tool_search) == "false"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("profiles:\n  'a b': {}", "cannot stand in an address"),
        ("profiles:\n  one: {allow: }", "`profiles.one.allow`"),
        ("profiles:\n  one: {alow: x}", "`profiles.one.alow` is not a known key"),
        ("profiles:\n  one: {deny: ['!x']}", "a `!` means nothing here"),
        ("profiles: [one]", "`profiles`"),
    ],
)
def test_what_is_no_profile_is_refused(text: str, problem: str) -> None:
    assert problem in str(refusal(f"servers: {{}}\n{text}"))


@pytest.mark.parametrize(
    ("allow", "deny", "is_shown"),
    [
        (("*",), (), True),
        (("github__*",), (), True),
        (("GITHUB__get_*",), (), True),
        (("git*__get_*",), (), True),
        (("mcp__us__github__*",), (), True),
        (("get_*",), (), True),
        (("gitlab__*",), (), False),
        ((), (), False),
        (("*",), ("github__*",), False),
        (("*",), ("git*__*",), False),
        (("*",), ("*",), False),
        (("*",), ("github__get_*",), True),
    ],
)
def test_a_server_exists_if_a_rule_may_mean_something_of_it(
    allow: tuple[str, ...], deny: tuple[str, ...], *, is_shown: bool
) -> None:
    assert Profile("one", allow=allow, deny=deny).shows_server(GITHUB) is is_shown


@pytest.mark.parametrize(
    ("allow", "is_read"),
    [(("*",), True), (("github__*",), True), (("*__*",), True), (("github__get_*",), False)],
)
def test_resources_are_shown_of_servers_that_are_allowed_whole(
    allow: tuple[str, ...], *, is_read: bool
) -> None:
    assert Profile("one", allow=allow).shows_resources(GITHUB) is is_read
    assert not Profile("one", allow=allow, resources=False).shows_resources(GITHUB)


@pytest.mark.parametrize(
    "glob", ["my_notes__delete_*", "my-notes__delete_*", "delete_*", "delete*"]
)
@pytest.mark.parametrize("name", ["delete_note", "deleteNote", "DELETE-NOTE", "delete.note"])
def test_a_glob_means_every_spelling_that_a_call_accepts(glob: str, name: str) -> None:
    assert not Profile("one", deny=(glob,)).admits(NOTES, {name})


def test_a_profile_is_for_clients_by_their_names() -> None:
    settings = config_of("servers: {}\nprofiles: {one: {clients: [Cursor-VSCode]}}").settings

    assert settings.profile_for("cursor-vscode (via mcp-remote 0.1)") == "one"
    assert settings.profile_for("another") is None


def test_a_profile_that_is_not_there_is_refused_with_the_nearest() -> None:
    config = config_of("servers: {}\nprofiles: {reading: {}}")

    check_profile(config, "reading")
    check_profile(config, "")
    with pytest.raises(ConfigError, match="has no profile `raeding`") as caught:
        check_profile(config, "raeding")
    assert caught.value.hint == "Did you mean `reading`?"
    with pytest.raises(ConfigError) as caught:
        check_profile(config_of("servers: {}"), "one")
    assert caught.value.hint == "It has no `profiles`"
