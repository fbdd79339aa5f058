"""The meta-tools: definition, arguments, answer."""

from aggregator.toolsearch.answer import Answer, tell
from aggregator.toolsearch.arguments import (
    CallRequest,
    Problem,
    SearchRequest,
    parse_call,
    parse_search,
)
from aggregator.toolsearch.conform import Conformed, conform
from aggregator.toolsearch.facts import EXPLAIN
from aggregator.toolsearch.find import Explained, Found, Missing, Result, awaited, search
from aggregator.toolsearch.offer import (
    CALL_READ_ONLY_TOOL,
    CALL_TOOL,
    TOOL_SEARCH,
    definitions,
    instructions,
)
from aggregator.toolsearch.refusal import unseen_problem
from aggregator.toolsearch.view import View

__all__ = [
    "CALL_READ_ONLY_TOOL",
    "CALL_TOOL",
    "EXPLAIN",
    "TOOL_SEARCH",
    "Answer",
    "CallRequest",
    "Conformed",
    "Explained",
    "Found",
    "Missing",
    "Problem",
    "Result",
    "SearchRequest",
    "View",
    "awaited",
    "conform",
    "definitions",
    "instructions",
    "parse_call",
    "parse_search",
    "search",
    "tell",
    "unseen_problem",
]
