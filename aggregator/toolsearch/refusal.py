"""What to say of a call that does not fit the definition of its tool."""

from collections.abc import Sequence
from typing import Literal

from aggregator.basics.effort import Effort
from aggregator.catalog import ToolEntry
from aggregator.config.settings import MAX_RESULT_CHARS
from aggregator.exposure import Way
from aggregator.toolsearch.describe import squeezed
from aggregator.toolsearch.wording import FRAME, fitting, one_line

PROBLEMS_SHARE = 0.3
"""The part of the text that says what is wrong."""


_WHY = {
    "never": "Its definition had not been loaded. Call it again to fit this:",
    "changed": "Its definition has changed since you saw it. Call it again to fit this:",
    "same": "Call it again to fit its definition:",
}


def unfit(
    entry: ToolEntry,
    problems: Sequence[str],
    seen: Literal["never", "changed", "same"] = "never",
    *,
    way: Way | None = None,
    max_chars: int = MAX_RESULT_CHARS,
    effort: Effort | None = None,
) -> str:
    """Say what does not fit, and give the definition, so that the next call succeeds."""
    lines = [f"| {one_line(each, 300)}" for each in problems]
    head = "\n".join(
        [
            f"{entry.name} was not called: its arguments do not fit.",
            FRAME,
            *fitting(lines, int(max_chars * PROBLEMS_SHARE)),
            _WHY[seen],
        ]
    )
    told = squeezed(entry, way, max_chars - len(head) - 2, effort or Effort())
    return f"{head}\n\n{told}"[:max_chars]
