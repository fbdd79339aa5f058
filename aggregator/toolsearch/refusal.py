"""What to say of a call that does not fit a definition the client has not seen."""

from collections.abc import Sequence

from aggregator.catalog import ToolEntry
from aggregator.config.values import MAX_RESULT_CHARS
from aggregator.exposure import Way
from aggregator.toolsearch.describe import squeezed
from aggregator.toolsearch.wording import fitting, one_line

PROBLEMS_SHARE = 0.3
"""The part of the text that says what is wrong."""


def unseen_problem(
    entry: ToolEntry,
    problems: Sequence[str],
    *,
    changed: bool = False,
    way: Way | None = None,
    max_chars: int = MAX_RESULT_CHARS,
) -> str:
    """Say what does not fit, and give the definition, so that the next call succeeds."""
    lines = [f"- {one_line(each, 300)}" for each in problems]
    why = "has changed since you saw it" if changed else "had not been loaded"
    head = "\n".join(
        [
            f"{entry.name} was not called: its arguments do not fit.",
            *fitting(lines, int(max_chars * PROBLEMS_SHARE)),
            f"Its definition {why}. Call it again to fit this:",
        ]
    )
    return f"{head}\n\n{squeezed(entry, way, max_chars - len(head) - 2)}"[:max_chars]
