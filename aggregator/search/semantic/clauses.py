"""What of a request is read for its meaning: the whole, or each of its sentences by itself."""

import re

from aggregator.search.chinese import has_chinese, in_english
from aggregator.search.weights import MAX_CLAUSES, SHORTEST_CLAUSE

_END = re.compile(r"(?<=[.?!;])\s+|[\n\u3002\uff01\uff1f]+")


def clauses(text: str) -> list[str]:
    """Return a request, or its sentences if it has several that say something.

    The vector of a whole request is the mean of all it asks for, and near to nothing that answers
    one part of it; of a long one the model does not even read the end.
    """
    if has_chinese(text):
        text = " ".join(in_english(text).split()) or text
    parts = [part.strip() for part in _END.split(text)]
    telling = [part for part in parts if len(part.split()) >= SHORTEST_CLAUSE]
    return telling[:MAX_CLAUSES] if len(telling) > 1 else [text]
