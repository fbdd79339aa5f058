import json

import pytest

from aggregator.names import MetaTools, ServerName
from aggregator.toolsearch import definitions, instructions, parse_search
from tests.config.reading import config_of, refusal

SERVERS = [
    (ServerName("github"), "Issues, pull requests and code"),
    (ServerName("slack"), "Messages\nand channels"),
]
SURFACES = ["promote", "hybrid", "relay", "full", "auto"]


def many(number: int) -> list[tuple[ServerName, str]]:
    return [(ServerName(f"server{each}"), "All about everything. " * 30) for each in range(number)]


@pytest.mark.parametrize("surface", ["promote", "hybrid", "relay"])
def test_each_surface_with_a_search_shows_the_meta_tools(surface: str):
    offered = [each["name"] for each in definitions(SERVERS, surface)]

    assert offered == ["ToolSearch", "CallTool", "CallReadOnlyTool"]
    assert definitions(SERVERS, "full") == ()


def test_those_that_call_another_tool_can_be_left_out():
    (search,) = definitions(SERVERS, "promote", relaying=False)

    assert search["name"] == "ToolSearch"
    assert "CallTool" not in search["description"]
    assert "CallTool" not in instructions(SERVERS, "promote", relaying=False)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("number", [0, 1, 7, 20, 70, 3000])
def test_descriptions_stay_small_with_any_number_of_servers(surface: str, number: int):
    told = instructions(many(number), surface)

    assert all(len(each["description"]) <= 1500 for each in definitions(many(number), surface))
    assert len(told) <= 2000
    assert len(told.split("\n")[0]) <= 250


def test_the_description_names_the_servers_and_what_they_are_for():
    description = definitions(SERVERS, "relay")[0]["description"]

    assert "- github: Issues, pull requests and code" in description
    assert "- slack: Messages and channels" in description


def test_the_description_shows_every_form_of_query_and_urges_to_search_first():
    search = definitions(SERVERS, "relay")[0]
    description = search["description"]

    assert {"queries", "wait", "offset"} <= search["inputSchema"]["properties"].keys()
    for form in ("select:", "server:", "+slack", "phrase", "empty"):
        assert form in description
    assert "behind this server" in description
    assert "before concluding that something cannot be done" in description


@pytest.mark.parametrize(
    ("surface", "grows"), [("promote", True), ("hybrid", True), ("relay", False)]
)
def test_the_description_says_how_a_found_tool_is_called(surface: str, grows: bool):
    description = definitions(SERVERS, surface)[0]["description"]

    assert "CallTool" in description
    assert ("joins your tool list" in description) == grows


def test_instructions_name_the_servers_on_the_first_line():
    first = instructions(SERVERS).split("\n")[0]

    assert "github" in first
    assert "slack" in first
    assert "ToolSearch" in first


def test_instructions_of_the_full_surface_do_not_speak_of_a_search_that_is_not_there():
    assert "ToolSearch" not in instructions(SERVERS, "full")


@pytest.mark.parametrize("surface", SURFACES)
def test_every_meta_tool_is_annotated_and_stays_loaded(surface: str):
    for each in definitions(SERVERS, surface):
        hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert hints <= each["annotations"].keys()
        assert each["_meta"]["anthropic/alwaysLoad"] is True
        assert each["_meta"]["anthropic/searchHint"]


def test_annotations_are_honest():
    search, call, read = (each["annotations"] for each in definitions(SERVERS, "relay"))

    assert (search["readOnlyHint"], search["openWorldHint"]) == (True, False)
    assert (call["readOnlyHint"], call["destructiveHint"], call["openWorldHint"]) == (
        False,
        True,
        True,
    )
    assert (read["readOnlyHint"], read["destructiveHint"]) == (True, False)


def test_input_schemas_are_plain_objects_that_every_client_accepts():
    for each in definitions(SERVERS, "relay"):
        schema = each["inputSchema"]
        assert schema["type"] == "object"
        assert schema["properties"]
        assert not {"anyOf", "oneOf", "$ref", "$defs"} & set(str(schema).replace("'", " ").split())


@pytest.mark.parametrize(("setting", "number"), [("", 8), ("maxResults: 12", 12)])
def test_the_default_that_is_told_is_the_one_that_is_configured(setting: str, number: int):
    settings = config_of(f"servers: {{}}\n{setting}").settings

    search = definitions(SERVERS, "relay", settings.max_results)[0]

    assert search["inputSchema"]["properties"]["max_results"]["default"] == number


def test_a_search_may_ask_for_as_many_tools_as_the_file_may():
    most = config_of("servers: {}\nmaxResults: 100").settings.max_results

    assert parse_search({"max_results": 1000}).max_results == most
    assert "maxResults" in str(refusal(f"servers: {{}}\nmaxResults: {most + 1}"))


def test_the_same_configuration_gives_the_same_definitions():
    assert definitions(SERVERS, "hybrid") == definitions(list(SERVERS), "hybrid")


def test_our_own_tools_cost_little():
    """Every model reads them on every turn."""
    read = [
        f"{each['name']}{each['description']}{json.dumps(each['inputSchema'])}"
        for each in definitions([(ServerName("time"), "")], "relay")
    ]

    assert sum(map(len, read)) < 1_500
    assert len(instructions([(ServerName("time"), "")], "relay")) < 250


@pytest.mark.parametrize("surface", ["promote", "hybrid", "relay"])
def test_renamed_tools_are_spoken_of_by_their_new_names(surface: str):
    names = MetaTools("FindTool", "UseTool", "ReadTool")
    told = definitions(SERVERS, surface, names=names)

    assert [each["name"] for each in told] == list(names)
    text = json.dumps(told) + instructions(SERVERS, surface, names)
    assert not any(name in text for name in MetaTools())
