"""The meta-tools: definition, arguments, answer."""

from aggregator.toolsearch.answer import Answer, answer, tell
from aggregator.toolsearch.arguments import (
    CallRequest,
    Problem,
    SearchRequest,
    parse_call,
    parse_search,
)
from aggregator.toolsearch.conform import Conformed, conform
from aggregator.toolsearch.find import Found, Missing, Result, awaited, search
from aggregator.toolsearch.offer import (
    CALL_READ_ONLY_TOOL,
    CALL_TOOL,
    TOOL_SEARCH,
    definitions,
    instructions,
)
from aggregator.toolsearch.refusal import unseen_problem
from aggregator.toolsearch.view import Call, Changes, View

__all__ = [
    "CALL_READ_ONLY_TOOL",
    "CALL_TOOL",
    "TOOL_SEARCH",
    "Answer",
    "Call",
    "CallRequest",
    "Changes",
    "Conformed",
    "Found",
    "Missing",
    "Problem",
    "Result",
    "SearchRequest",
    "View",
    "answer",
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
