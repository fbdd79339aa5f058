"""What a model is told of found tools in words, where nothing else can carry them."""

import re
from collections.abc import Sequence

_LOADED = re.compile(r"Loaded: ([\w, -]+)\.")


def loaded(names: Sequence[str]) -> str:
    """Say that tools can be called from now on."""
    return f"Loaded: {', '.join(names)}."


def names_loaded(text: str) -> tuple[str, ...]:
    """Return the tools that a text of ours says can be called."""
    said = _LOADED.match(text)
    return tuple(said[1].split(", ")) if said else ()
