"""The process that holds a tokenizer: texts in, the number of their tokens out, and it ends.

    {"package": "tiktoken", "name": "o200k_base", "texts": ["…"]}  →  {"tokens": 4711}
    …  →  {"problem": "the package `tiktoken` is not installed"}

A tokenizer takes tens of megabytes and may fetch its vocabulary first: nothing of that is for the
process that answers clients.
"""

import importlib
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LIFETIME = 120
"""Seconds after which it ends whatever it waits for, also where nobody is left to end it."""

Encode = Callable[[str], int]


def count(package: str, name: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return how many tokens texts have; what else fails ends the process, and says why."""
    try:
        encode = _encoder(package, name)
    except ModuleNotFoundError:
        return {"problem": f"the package `{package}` is not installed"}
    return {"tokens": sum(map(encode, texts))}


def _encoder(package: str, name: str) -> Encode:
    module = importlib.import_module(package)
    if package == "tiktoken":
        encoding = module.get_encoding(name)
        # What looks like a special token in a foreign text is text.
        return lambda text: len(encoding.encode_ordinary(text))
    # Said here, since the package says it without a name.
    Path(name).stat()
    tokenizer = module.Tokenizer.from_file(name)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def main() -> None:
    """Answer the one question on the standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "alarm"):
        signal.alarm(LIFETIME)
    asked = json.load(sys.stdin.buffer)
    print(json.dumps(count(asked["package"], asked["name"], asked["texts"])))  # noqa: T201


if __name__ == "__main__":
    main()
