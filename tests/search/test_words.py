"""Words as people and models write them, in any script."""

import pytest

from aggregator.search.lexicon import equivalents, faint, shares, topics
from aggregator.search.name_index import one_slip
from aggregator.search.words import stem, tokens, words
from tests.search.tools import entry, index_of, search


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create_issue", ["create", "issue"]),
        ("create-issue", ["create", "issue"]),
        ("createIssue", ["create", "issue"]),
        ("getHTTPResponse", ["get", "http", "response"]),
        ("listURLs", ["list", "urls"]),
        ("s3 sha256 36kr", ["s3", "sha256", "36kr"]),
        ("Größe der Äpfel", ["grosse", "der", "apfel"]),
        ("Événement", ["evenement"]),
        ("\uff21\uff30\uff29", ["api"]),
        ("天气预报", ["天气", "气预", "预报"]),
        ("使用bing搜索", ["使用", "bing", "搜索"]),
        ("مَرحبا", ["مرحبا"]),
        ("", []),
        ("_-.!", []),
    ],
)
def test_a_text_has_these_words(text: str, expected: list[str]):
    assert words(text) == expected


def test_humps_belong_to_one_word():
    assert tokens("GitHub issues") == [("git", "hub"), ("issues",)]


@pytest.mark.parametrize(
    "forms",
    [
        "create creates created creating creation creator",
        "issue issues",
        "search searches searching searched",
        "category categories",
        "translate translation translating translator",
        "delete deleted deletion",
        "run running runs runner",
        "message messages messaging",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str):
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("pair", ["new news", "status state", "address add", "page pages2"])
def test_words_that_differ_keep_different_stems(pair: str):
    one, other = pair.split()
    assert stem(one) != stem(other)


@pytest.mark.parametrize("typed", ["isue", "issuee", "issie", "isseu", "issue"])
def test_one_slip_is_recognised(typed: str):
    assert one_slip(typed, "issue")


@pytest.mark.parametrize("typed", ["is", "tissues", "eussi", "iuss"])
def test_two_slips_are_not_one(typed: str):
    assert not one_slip(typed, "issue")


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Löscht eine Datei aus dem Projektordner", "datei löschen"),
        ("Löscht eine Datei aus dem Projektordner", "loscht Datei"),
        ("Crée un événement dans le calendrier", "creer evenement"),
        ("Busca vuelos entre dos ciudades", "buscar vuelos"),
        ("查询指定城市的天气预报", "天气"),
        ("查询指定城市的天气预报", "北京的天气预报"),
        ("指定された都市の天気を取得します", "天気を調べる"),
        ("ファイルを削除する", "ファイル 削除"),
        ("إنشاء ملف جديد في المجلد", "ملف جديد"),
        ("ดึงข้อมูลสภาพอากาศ", "สภาพอากาศ"),
        ("Создать новую задачу", "создать задачу"),
        ("파일을 삭제합니다", "파일을"),
        ("फ़ाइल हटाएं", "हटाएं"),
    ],
)
def test_a_tool_is_found_by_its_own_words_in_any_language(description: str, text: str):
    index = index_of(entry("a__tool_one", description), entry("b__tool_two", "Something else"))
    assert search(index, text) == ["a__tool_one"]


def test_no_word_of_the_tables_stands_for_itself():
    for table in (equivalents(), topics()):
        assert all(word not in others for word, others in table.items())


def test_the_tables_are_read():
    assert "remov" in equivalents()["delet"]
    assert "weath" in topics()["umbrella"]
    assert shares()["get"] > shares()["task"] > 0
    assert stem("please") not in topics()
    assert "help" in faint()


@pytest.mark.parametrize(
    "others",
    [("notion", "note", "not"), ("comment", "com"), ("plane", "plan"), ("author", "auth")],
)
def test_words_that_only_look_like_forms_of_each_other_are_told_apart(others: tuple[str, ...]):
    assert len({stem(word) for word in others}) == len(others)
    assert stem(others[0] + "s") == stem(others[0])
