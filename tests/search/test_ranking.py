"""What comes first, and what is left out."""

import pytest

from aggregator.names import ServerName
from aggregator.search.index import Index
from aggregator.search.query import Keywords, parse_query
from tests.search.tools import entry, index_of, search

OFFICE = (
    entry("slack__send_message", "Send a message to a channel."),
    entry("slack__list_channels", "List the channels of the workspace."),
    entry("github__create_issue", "Create a new issue in a repository."),
    entry("github__list_issues", "List the issues of a repository."),
    entry("github__get_issue", "Get one issue by its number."),
    entry("mail__send_email", "Send an email to one or more people.", hint="newsletter"),
    entry("weather__get_forecast", "Forecast for a city: temperature and wind."),
    entry("files__read_file", "Read a text file from disk."),
    entry("files__delete_file", "Delete a file."),
)


def first(text: str) -> str:
    return search(index_of(*OFFICE), text)[0]


def test_the_example_people_know():
    index = index_of(
        entry("slack__send_message"),
        entry("slack__list_channels"),
        entry("github__create_issue"),
        entry("email__send_email"),
    )
    assert search(index, "slack send") == [
        "slack__send_message",
        "slack__list_channels",
        "email__send_email",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "create issue",
        "createIssue",
        "CreateIssue",
        "create_issue",
        "create-issue",
        "CREATE ISSUE",
        "createissue",
        "issue create",
        "creating issues",
        "github create issue",
        "create isue",
        "crate issue",
        "githbu create issue",
    ],
)
def test_a_name_is_found_however_it_is_written(text: str):
    assert first(text) == "github__create_issue"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("I need to tell the team that the deploy is done", "slack__send_message"),
        ("will I need an umbrella tomorrow", "weather__get_forecast"),
        ("remove a file", "files__delete_file"),
        ("newsletter", "mail__send_email"),
        ("slak message", "slack__send_message"),
        ("forec", "weather__get_forecast"),
        ("please could you show me what is in this text file", "files__read_file"),
    ],
)
def test_a_need_finds_the_tool_for_it(text: str, name: str):
    assert first(text) == name


@pytest.mark.parametrize("text", ["remember that Anna likes tea", "forget what Bob has said"])
def test_what_somebody_says_to_a_memory_finds_it(text: str):
    index = index_of(
        entry("git__status", "Shows the working tree status."),
        entry("fetch__fetch", "Fetch a URL, which you have known how to do so far."),
        entry("memory__delete_entities", "Delete multiple entities from the knowledge graph."),
        entry("memory__add_observations", "Add observations to the knowledge graph."),
    )
    assert search(index, text)[:1] in (["memory__delete_entities"], ["memory__add_observations"])


def test_a_word_itself_beats_a_word_that_means_the_same():
    index = index_of(entry("a__remove_page"), entry("b__delete_page"))
    assert search(index, "delete page") == ["b__delete_page", "a__remove_page"]
    assert search(index, "remove page") == ["a__remove_page", "b__delete_page"]


def test_a_tool_that_has_none_of_the_words_is_left_out():
    assert search(index_of(*OFFICE), "zebra") == []
    assert "weather__get_forecast" not in search(index_of(*OFFICE), "issue", limit=50)


def test_equal_tools_come_in_the_order_of_the_catalog():
    entries = [entry(f"{server}__ping", f"Ping {server}.") for server in ("red", "blue", "green")]
    assert search(index_of(*entries), "ping") == ["red__ping", "blue__ping", "green__ping"]


def test_singular_and_plural_are_told_apart_when_both_are_there():
    index = index_of(entry("hub__get_user"), entry("hub__get_users"))
    assert search(index, "get users")[0] == "hub__get_users"
    assert search(index, "user get")[0] == "hub__get_user"


@pytest.mark.parametrize("text", ["+slack send", "send +slack", '+"slack" send'])
def test_a_required_word_is_in_every_hit(text: str):
    assert search(index_of(*OFFICE), text) == ["slack__send_message", "slack__list_channels"]


def test_a_required_part_of_a_name_is_enough():
    assert search(index_of(*OFFICE), "+forec temperature") == ["weather__get_forecast"]


def test_a_required_word_that_nothing_has_leaves_nothing():
    assert search(index_of(*OFFICE), "+zebra send") == []


def test_a_required_word_may_stand_in_hint_or_parameters():
    schema = {"properties": {"zebra_count": {"description": "stripes"}}}
    index = index_of(*OFFICE, entry("zoo__feed", inputSchema=schema))
    assert search(index, "+newsletter send") == ["mail__send_email"]
    assert search(index, "+stripes") == ["zoo__feed"]


def test_a_phrase_is_found_before_its_words_apart():
    index = index_of(
        entry("a__one", "The message you may want to send."),
        entry("b__two", "Can send a message."),
    )
    assert search(index, '"send a message"') == ["b__two"]


def test_a_phrase_that_nobody_says_is_just_words():
    assert search(index_of(*OFFICE), '"message send"')[0] == "slack__send_message"


def test_quotes_around_a_value_in_a_request_demand_nothing():
    index = index_of(*OFFICE, entry("x__y", "hello from here"))
    text = 'create an issue in the repository with the title "hello from here" today'
    assert search(index, text)[0] == "github__create_issue"


@pytest.mark.parametrize("text", ["server:github", "mcp__github", "github__", "server:GitHub"])
def test_a_server_alone_is_all_its_tools_in_order(text: str):
    expected = ["github__create_issue", "github__list_issues", "github__get_issue"]
    assert search(index_of(*OFFICE), text) == expected
    assert search(index_of(*OFFICE), text, limit=2) == expected[:2]


def test_a_server_with_words_is_a_filter():
    assert search(index_of(*OFFICE), "server:slack list issue") == ["slack__list_channels"]


def test_servers_are_matched_without_regard_to_dashes():
    index = index_of(entry("my-server_2__ping"))
    assert search(index, "server:My_Server-2") == ["my-server_2__ping"]
    assert search(index, "server:other ping") == []


def test_words_of_the_servers_description_find_its_tools():
    index = Index([ServerName("acme")])
    index.update(ServerName("acme"), [entry("acme__run")], description="Payroll and holidays")
    assert search(index, "payroll") == ["acme__run"]


def test_the_parts_of_a_score_add_up():
    index = index_of(*OFFICE)
    query = parse_query("github create isue in repository")
    assert isinstance(query, Keywords)
    hit = index.rank(query, 1)[0]
    why = index.explain(query, hit.entry)
    assert sum(each.score for each in why) == pytest.approx(hit.score, rel=0.01)
    assert {("isue", "issu", "name"), ("github", "github", "server")} <= {
        (each.word, each.term, each.field) for each in why
    }


def test_what_is_not_indexed_has_no_explanation():
    assert index_of(*OFFICE).explain(Keywords("issue", ("issue",)), entry("x__issue")) == ()


def test_what_is_explained_may_match_by_another_word_or_not_at_all():
    index = index_of(entry("a__x", "Nothing."), entry("a__remove_page"), entry("b__delete_user"))
    why = index.explain(Keywords("", ("delete", "page", "user")), entry("a__remove_page"))
    assert [(each.word, each.term) for each in why if each.word] == [
        ("delete", "remov"),
        ("page", "pag"),
    ]


def test_a_name_of_common_words_is_found_among_thousands():
    kinds = ("item", "page", "user", "note", "file", "issue", "order", "price")
    deeds = ("get", "list", "create", "update", "delete")
    crowd = [
        entry(f"server{n}__{deed}_{kind}", f"{deed} the data of a {kind}")
        for n in range(50)
        for deed in deeds
        for kind in kinds
    ]
    index = index_of(*crowd, entry("last__get_user_data_list"))
    assert len(index) == 2001
    assert search(index, "get data list user")[0] == "last__get_user_data_list"
    assert search(index, "get the data of a user")[0].endswith("__get_user")


def test_a_tool_without_a_word_in_its_name_is_found_by_its_description():
    index = index_of(entry("!!!__???", "Fold a paper crane"))
    assert search(index, "paper crane") == ["!!!__???"]


@pytest.mark.parametrize("text", ["read a file", "read_file", "file contents"])
@pytest.mark.parametrize(
    "said",
    [
        "Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.",
        "Deprecated, please use read_text_file instead. Read the contents of a file.",
        "Read the contents of a file (deprecated since 2.0).",
        "Read the contents of a file. This tool is deprecated.",
    ],
)
def test_what_is_deprecated_comes_after_what_took_its_place(text: str, said: str):
    index = index_of(
        entry("files__read_file", said),
        entry("files__read_text_file", "Read the complete contents of a file as text."),
        entry("files__move_file", "Move or rename files and directories."),
    )

    assert search(index, text)[:2] == ["files__read_text_file", "files__read_file"]


def test_what_a_deprecated_tool_names_stands_in_for_it():
    index = index_of(
        entry("files__read_file", "Read a file as text. DEPRECATED: Use read_text_file instead."),
        entry("files__text", "Text."),
        entry("files__read_media_file", "Read an image or audio file. Read a file whole."),
        entry("files__read_multiple_files", "Read files, file by file: read a file, read files."),
        entry("files__read_text_file", "Complete contents from the file system as text."),
        entry("other__read_text_file", "Something else altogether."),
    )

    assert search(index, "read a file")[0] == "files__read_text_file"


@pytest.mark.parametrize(
    "about", ["Check if packages are deprecated", "Deprecated packages of a project, as a list"]
)
def test_what_is_about_deprecated_things_is_not_deprecated(about: str):
    index = index_of(
        entry("npm__list_packages", about),
        entry("npm__packages_listed_by_name", "List packages by name"),
    )

    assert search(index, "list packages")[0] == "npm__list_packages"


def test_every_need_of_a_long_request_has_a_place():
    codes = [
        entry(f"qr{number}__make_code", f"Generate a QR code for an invitation link, kind {number}")
        for number in "abcdef"
    ]
    uuid = entry("ids__random_uuid", "Generate a random UUID")
    calendar = entry("dates__republican", "Convert a date to the French Republican calendar")
    request = (
        "I am organizing a surprise birthday party for my best friend and need your help. Can you "
        "generate a QR code for the link of the invitation that everybody gets by mail? Also, I "
        "want to convert the date of it to the French Republican calendar to give the party a "
        "unique theme. Additionally, I need a random UUID for the reservation."
    )

    found = search(index_of(*codes, calendar, uuid), request)

    assert {"ids__random_uuid", "dates__republican"} <= set(found)


def test_what_stands_at_the_end_of_a_long_request_counts():
    request = "please " + "do whatever else is to be done " * 30 + "and resize my photograph"
    photo = entry("images__resize", "Resize a photograph")

    assert search(index_of(entry("a__do", "Do what is to be done"), photo), request, 2)[0] == (
        "images__resize"
    )


def test_tools_of_one_server_are_no_copies_of_each_other():
    there = entry("mojang__uuid_to_username", "Turn an UUID into a username")
    back = entry("mojang__username_to_uuid", "Turn a username into an UUID")
    others = [entry(f"s{n}__lookup", "Look up the username of a player") for n in range(4)]

    assert set(search(index_of(*others, there, back), "uuid username", 2)) == {
        "mojang__uuid_to_username",
        "mojang__username_to_uuid",
    }


@pytest.mark.parametrize("text", ["show me all tasks", "show all my tasks", "show tasks"])
def test_who_wants_to_be_shown_something_is_not_offered_to_delete_it(text: str):
    index = index_of(
        entry("todo__delete_task", "Delete a task."),
        entry("todo__delete_all_tasks", "Delete all tasks."),
        entry("todo__complete_task", "Mark a task as done."),
        entry("todo__list_tasks", "List the tasks."),
    )

    assert search(index, text)[0] == "todo__list_tasks"


@pytest.mark.parametrize(
    "text", ["what time is it", "Hey, can you say what time it is?", "What's the time?"]
)
def test_who_asks_a_question_wants_to_be_told(text: str):
    index = index_of(
        entry("time__convert_time", "Convert time between timezones"),
        entry("time__get_current_time", "Get current time in a specific timezones"),
    )

    assert search(index, text)[0] == "time__get_current_time"
    assert search(index, "convert the time")[0] == "time__convert_time"


def test_who_calls_notion_is_not_offered_notes():
    index = index_of(
        entry("notes__notes_search", "Search notes"),
        entry("notes__notes_list", "List notes"),
        entry("notion__query", "Search pages and databases"),
        entry("notion__read", "Read a page"),
    )

    assert search(index, "notion search pages", 2) == ["notion__query", "notion__read"]


@pytest.mark.parametrize("quotes", ["''", '""', "\u201c\u201d"])
def test_what_a_long_request_has_in_quotes_is_a_value(quotes: str):
    index = index_of(
        entry("zoo__fox", "Everything about the fox"),
        entry("files__text", "A place for what is to be kept"),
    )
    title = f"{quotes[0]}fox{quotes[1]}"

    assert search(index, f"could you please put the text {title} somewhere for me")[0] == (
        "files__text"
    )
    assert search(index, "could you please put the text fox somewhere for me")[0] == "zoo__fox"
    assert search(index, f"text {title}")[0] == "zoo__fox"


def test_a_word_written_together_is_found_by_its_halves():
    index = index_of(entry("garden__plants", "About a plant of the house"), entry("x__y", "Sheds"))
    assert search(index, "care of houseplants") == ["garden__plants"]
    assert search(index, "care of skyplants") == []


@pytest.mark.parametrize(
    "path", ["/srv/fox/fox.md", "~/fox.pdf", "./fox/den.csv", "C:/fox/fox.txt", "fox.docx"]
)
def test_a_path_says_that_a_file_is_meant(path: str):
    index = index_of(
        entry("zoo__fox", "Everything about the fox"),
        entry("disk__write_file", "Keep a text"),
        entry("disk__write_row", "Keep a text"),
    )

    assert search(index, f"please write what you know to {path}")[0] == "disk__write_file"
    assert search(index, "please write what you know of the fox")[0] == "zoo__fox"


@pytest.mark.parametrize("text", ["Node.js", "e.g. this", "version 2.5", "https://fox.example/md"])
def test_other_words_with_dots_and_slashes_are_no_paths(text: str):
    index = index_of(entry("disk__write_file", "Keep a text"))
    assert search(index, f"fox {text}") == []


def test_a_question_about_nothing_that_is_known_finds_nothing():
    index = index_of(entry("time__get_time", "The time"), entry("world__get_map", "A map"))

    assert search(index, "what gibberish") == []
    assert search(index_of(entry("talk__chat", "Talk"), entry("a__map", "A map")), "what map") == [
        "a__map"
    ]


def test_a_number_does_not_bring_in_tools_before_the_words_that_matter(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("aggregator.search.scoring.BUDGET", 100)
    dated = [entry(f"dates{n}__of_{n}", "What was in 2024.") for n in range(60)]
    banks = [entry(f"shop{n}__buy_{n}", "Pays by bank.") for n in range(70)]
    rates = [entry(f"film{n}__watch_{n}", "Says a rate.") for n in range(80)]

    index = index_of(*dated, *banks, *rates, entry("money__bank_rate", "The rate of a bank."))

    assert search(index, "bank rate 2024")[0] == "money__bank_rate"


def test_a_short_query_is_mended_as_its_words_are_ranked():
    index = index_of(*OFFICE)

    def mended(text: str) -> tuple[str, ...]:
        query = parse_query(text)
        assert isinstance(query, Keywords)
        return index.mended(query)

    assert mended("wheather Forcast") == ("weather forecast",)
    assert mended("send a mesage") == ("send a message",)
    assert mended("send a message") == ()
    assert mended("ask Misha to be so kind and send the mesage to everybody") == ()
