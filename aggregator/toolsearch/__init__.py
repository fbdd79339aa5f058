"""The meta-tools: definition, arguments, answer."""

from aggregator.toolsearch.answer import Answer, tell
from aggregator.toolsearch.arguments import (
    CallRequest,
    Problem,
    SearchRequest,
    parse_call,
    parse_search,
)
from aggregator.toolsearch.concern import asked_of, awaited
from aggregator.toolsearch.conform import Conformed, conform
from aggregator.toolsearch.facts import EXPLAIN
from aggregator.toolsearch.find import Explained, Found, Missing, Result, search, searching
from aggregator.toolsearch.offer import definitions, instructions
from aggregator.toolsearch.refusal import unfit
from aggregator.toolsearch.view import View

__all__ = [
    "EXPLAIN",
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
    "asked_of",
    "awaited",
    "conform",
    "definitions",
    "instructions",
    "parse_call",
    "parse_search",
    "search",
    "searching",
    "tell",
    "unfit",
]
