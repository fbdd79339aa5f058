"""The meta-tools: definition, arguments, answer.

Here is what a client is given at the start, and what each call needs; what only a search takes is
in the modules themselves, so that nobody waits for it who does not search.
"""

from aggregator.toolsearch.arguments import (
    CallRequest,
    Problem,
    SearchRequest,
    parse_call,
    parse_search,
)
from aggregator.toolsearch.conform import Conformed, Plain, conform, plain_form
from aggregator.toolsearch.offer import definitions, instructions

__all__ = [
    "CallRequest",
    "Conformed",
    "Plain",
    "Problem",
    "SearchRequest",
    "conform",
    "definitions",
    "instructions",
    "parse_call",
    "parse_search",
    "plain_form",
]
