import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.catalog import Failed, Pending
from aggregator.toolsearch import parse_search
from aggregator.toolsearch.refusal import unfit
from tests.toolsearch.test_arguments import JSON, KEYS
from tests.toolsearch.test_conform import SCHEMAS
from tests.toolsearch.views import EMAIL, GITHUB, SLACK, answer, ask, entry_of, ready, tool, view_of

MANY = ready("many", *(tool(f"thing_{n}", "Do a thing. " * (n % 90)) for n in range(120)))
VIEW = view_of(
    {
        "slack": SLACK,
        "github": GITHUB,
        "email": EMAIL,
        "many": MANY,
        "jira": Pending("refused " * 100),
        "wiki": Failed("broken " * 100),
    }
)
QUERIES = st.text() | st.sampled_from(
    ["thing", "server:many", "select:" + ",".join(f"thing_{n}x" for n in range(90)), "x" * 10_000]
)


@given(st.dictionaries(st.sampled_from(KEYS), QUERIES | JSON) | JSON)
@settings(deadline=None)
def test_anything_gets_a_readable_answer_within_the_budget(sent: Any):
    found = answer(parse_search(sent), VIEW)

    assert found.text.strip()
    assert len(found.text) <= 8000
    assert found.text.encode()
    assert all(each.isprintable() for each in found.text.split("\n"))
    assert len({each.name for each in found.matches}) == len(found.matches)
    assert json.dumps(found.meta)


@given(st.lists(QUERIES, min_size=1, max_size=12), st.integers(300, 20_000))
@settings(deadline=None)
def test_any_budget_is_kept(queries: list[str], max_chars: int):
    view = replace(VIEW, max_chars=max_chars)

    found = answer(parse_search({"queries": queries, "max_results": 50}), view)

    assert 0 < len(found.text) <= max_chars


@given(SCHEMAS, st.text())
@settings(deadline=None)
def test_any_definition_can_be_told(schema: Any, description: str):
    definition = {"name": "run", "description": description, "inputSchema": schema}
    view = view_of({"demo": ready("demo", definition)})

    found = ask(view, "select:run")

    assert len(found.text) <= 8000
    assert all(each.isprintable() for each in found.text.split("\n"))
    assert unfit(entry_of(definition), ["x"], max_chars=500)


@pytest.mark.parametrize("query", ["\x00\x1b[2J", "\ud800", "اكتب رسالة", "發送訊息", "🦊" * 3000])
def test_any_script_is_answered(query: str):
    assert ask(VIEW, query).text.encode()
