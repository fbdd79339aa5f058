"""What was told of a tool before is told again as it would be if it had not been."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.basics.effort import Effort
from aggregator.catalog import ToolEntry
from aggregator.toolsearch.definition_cache import MOST, DefinitionCache
from aggregator.toolsearch.describe import COMPACT, FULL, LEAST, definition, signature
from tests.toolsearch.test_conform import SCHEMAS
from tests.toolsearch.views import entry_of, tool
from tests.work import calls

INTRICATE: dict[str, Any] = {
    "type": "object",
    "properties": {f"p{n}": {"type": "string", "minLength": n} for n in range(60)},
}

FORMS = st.tuples(
    st.sampled_from([FULL, COMPACT, LEAST]),
    st.sampled_from([40, 400, 8_000]),
    st.sampled_from([0, 5, 60, 8_000]),
)


def told(entry: ToolEntry, forms: list[tuple[Any, int, int]], *, afresh: bool) -> list[Any]:
    found: list[Any] = []
    for detail, room, steps in forms:
        whole = Effort(steps)
        effort = whole.part(2)
        each = copy.deepcopy(entry) if afresh else entry
        texts = definition(each, None, detail, room, effort), signature(each, effort)
        found.append((texts, effort.left, effort.fell_short, whole.left, whole.fell_short))
    return found


@given(SCHEMAS, st.lists(FORMS, min_size=2, max_size=6))
@settings(deadline=None)
def test_says_the_same_in_any_room_and_with_any_effort(
    schema: Any, forms: list[tuple[Any, int, int]]
) -> None:
    entry = entry_of(tool("run", "Runs.") | {"inputSchema": schema})

    assert told(entry, forms, afresh=False) == told(entry, forms, afresh=True)


def test_is_worked_out_once() -> None:
    entry = entry_of(tool("run", "Runs.") | {"inputSchema": INTRICATE})

    def tell() -> None:
        told(entry, [(FULL, 8_000, 8_000)], afresh=False)

    assert calls(tell) > 5 * calls(tell)


def test_nothing_is_kept_of_long_ago() -> None:
    cache, effort = DefinitionCache[str](), Effort()
    names = [object() for _ in range(MOST + 1)]
    for each in names:
        cache.keep(each, None, "text", length=4, steps=1)

    assert cache.find(names[0], None, 9, effort) is None
    assert cache.find(names[1], None, 9, effort) == "text"
    assert cache.find(names[1], None, 3, effort) is None
    assert cache.find(names[1], None, 9, Effort(0)) is None
