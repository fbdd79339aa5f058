"""Tokens that somebody counts, on every page that tells of them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT, Shell
from tests.fleet.test_counters import vendor, vocabulary, weight

UNITS = ROOT / "examples" / "servers" / "units.py"
SERVERS = f"servers:\n  units: {{command: [{sys.executable}, {UNITS}]}}\n"

pytestmark = pytest.mark.slow


def inspected(shell: Shell, *arguments: str) -> dict[str, Any]:
    ran = shell.run("inspect", *arguments, "--json")
    return json.loads(ran.out)


def test_inspect_and_stats_tell_what_a_tokenizer_counts(shell: Shell) -> None:
    shell.write_servers(SERVERS)
    (units,) = inspected(shell)["servers"]
    characters = 2.5 * units["tokens"]
    vocabulary(shell.project / "each.json")

    shell.write_servers("tokens: tokenizers:each.json\n" + SERVERS)
    (counted,) = inspected(shell)["servers"]
    unused = json.loads(shell.run("stats", "--json").out)["unused"]

    # A character is a token, and two more are between name, description and schema.
    assert characters - 2.5 * units["tools"] < counted["tokens"]
    assert counted["tokens"] < characters + 3 * units["tools"]
    assert [each["tokens"] for each in unused] == [counted["tokens"]]


def test_a_counter_that_cannot_count_is_named_where_people_look(shell: Shell) -> None:
    shell.write_servers("tokens: tokenizers:nowhere.json\n" + SERVERS)

    page, checked = shell.run("inspect"), shell.run("check")

    for out in (page.out, checked.out + checked.err):
        words = " ".join(out.split())
        assert "`tokens`: `tokenizers` cannot use" in words
        assert "so tokens are told by length" in words


def test_the_key_of_a_vendor_is_shown_to_the_vendor_alone(shell: Shell) -> None:
    shell.variables["KEY"] = "sk-canary-of-the-vendor"
    with vendor("/v1/messages/count_tokens", weight) as (url, sent):
        form = f"tokens: {{url: {url}, model: claude-opus-5, key: '${{KEY}}'}}\n"
        shell.write_servers(form + SERVERS)
        ran = shell.run("inspect", "-vv")
        (units,) = inspected(shell)["servers"]

    assert units["tokens"] - 100 * units["tools"] in range(units["tools"] + 1)
    assert {headers["x-api-key"] for headers, _ in sent} == {"sk-canary-of-the-vendor"}
    # What was counted once is remembered.
    assert len(sent) == 2
    assert "sk-canary" not in ran.out + ran.err
    assert all("sk-canary" not in _read(path) for path in shell.home.rglob("*") if path.is_file())


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
