"""How `serve` was typed, as far as it matters before everything else is loaded."""

import argparse
from io import StringIO
from pathlib import Path

import pytest

from aggregator.cli.environment import Environment
from aggregator.cli.parser import make_parser
from aggregator.entry.typed import typed

UNDERSTOOD = [
    "serve",
    "serve --config x",
    "serve --config=x",
    "serve --config a --config b",
    "serve -v",
    "serve -vv --config x",
    "serve --verbose --log-format json",
    "serve --log-format=text",
    "serve --example",
    "serve --profile x",
    "serve --profile=x --config y",
]
LEFT_ALONE = [
    "",
    "check",
    "help serve",
    "--version",
    "serve --help",
    "serve --http 8080",
    "serve --only x",
    "serve --afresh",
    "serve --config",
    "serve --config -v",
    "serve --profile",
    "serve --profile=",
    "serve --config=",
    "serve --example --config x",
    "serve --v",
    "serve -vx",
    "serve -",
    "serve --",
    "serve extra",
    "serve --example=x",
]


def parsed(words: list[str]) -> argparse.Namespace:
    environment = Environment(StringIO(), StringIO(), {}, Path("/"), StringIO())
    return make_parser(environment).parse_args(words)


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_what_is_understood_is_what_the_parser_makes_of_it(line: str) -> None:
    found, options = typed(line.split()), parsed(line.split())

    assert found is not None
    named = None if found.example else options.config
    assert (found.config, found.verbose) == (named, options.verbose > 0)
    assert (found.profile or None) == options.profile
    assert not found.shared


@pytest.mark.parametrize("line", LEFT_ALONE)
def test_whatever_else_is_left_to_the_parser(line: str) -> None:
    assert typed(line.split()) is None


def test_an_empty_file_is_left_to_the_parser() -> None:
    assert typed(["serve", "--config", ""]) is None
