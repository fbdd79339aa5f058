"""Requests in English find tools that are described in Chinese, and the other way round."""

import pytest

from aggregator.search.chinese import has_chinese, in_english, meanings
from aggregator.search.semantic.clauses import clauses
from aggregator.search.semantic.gist import gist
from aggregator.search.words import stem
from tests.search.tools import entry, index_of, search

TRAINS = entry("rail__query", "查询余票信息, 支持按日期筛选")
WEATHER = entry("sky__forecast", "Weather forecast for a city")
NOTES = entry("memo__save", "保存笔记到数据库")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("查询天气预报", "query weather forecast"),
        ("获取 BBC 新闻", "get BBC news"),
        ("数据库", "database"),
        ("龘龘", ""),
        ("现在几点", "current time"),
        ("显示差异", "show difference"),
        ("创建目录", "create directory"),
        ("weather in Köln", "weather in Köln"),
    ],
)
def test_known_words_are_told_in_english_and_others_left_out(text: str, expected: str):
    assert " ".join(in_english(text).split()) == expected


def test_other_scripts_are_not_chinese():
    assert has_chinese("天")
    assert not has_chinese("weather Köln погода 날씨 ひらがな")


def test_a_pair_means_what_the_words_mean_that_it_is_of():
    assert meanings()["天气"] == (stem("weather"),)
    assert stem("database") in meanings()["据库"]
    assert meanings()["数据"] == (stem("data"),)


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("train tickets by date", TRAINS.name),
        ("查询余票", TRAINS.name),
        ("明天城市的天气预报", WEATHER.name),
        ("save a note", NOTES.name),
        ("保存笔记", NOTES.name),
    ],
)
def test_a_request_finds_tools_of_either_language(request_text: str, expected: str):
    index = index_of(TRAINS, WEATHER, NOTES)
    assert search(index, request_text)[0] == expected


def test_a_chinese_title_is_found_by_english_words():
    index = index_of(entry("a__x1", title="天气查询"), entry("a__x2", title="火车时刻"))
    assert search(index, "weather") == ["a__x1"]


def test_a_word_that_is_in_no_table_is_found_as_it_is_written():
    index = index_of(entry("a__x1", "麒麟"), entry("a__x2", "凤凰"))
    assert search(index, "麒麟") == ["a__x1"]


def test_a_long_chinese_text_counts_for_its_length():
    short, long = entry("a__x1", "天气"), entry("b__x2", "天气" + "麒麟凤凰" * 200)
    assert search(index_of(long, short), "天气") == [short.name, long.name]


def test_meaning_is_read_in_english():
    assert gist(TRAINS) == "rail query: query ticket info , support date filter"
    assert clauses("查询余票") == ["query ticket"]
    assert clauses("龘龘") == ["龘龘"]
