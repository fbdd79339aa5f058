"""YAML in braces and brackets: one entry is put in or taken out, the others stay as written."""

import json
import re
from collections.abc import Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, SequenceNode

from aggregator.basics.json import is_array

_COMMENT = re.compile(r"#[^\n]*")

Span = tuple[int, int]


def inserted(text: str, node: MappingNode | SequenceNode, added: Any) -> str:  # noqa: ANN401 - YAML
    """Return the text with more at the end of what is not empty."""
    spans, close = _spans(node), _index(node, end=True) - 1
    last = spans[-1][1]
    tail = text[last:close]
    comma = "" if "," in _COMMENT.sub("", tail) else ","
    kept = tail.rstrip()
    # What is spread over lines goes on so; a comment would swallow what is on its line.
    is_spread = "\n" in text[_index(node) : close] or "#" in kept
    gap = f"\n{_indent(text, spans[0][0])}" if is_spread else " "
    end = tail[len(kept) :] or ("\n" if "#" in kept else "")
    return f"{text[:last]}{comma}{kept}{gap}{_written(added)}{end}{text[close:]}"


def without(text: str, node: MappingNode | SequenceNode, at: int) -> str:
    """Return the text without the entry at a position."""
    spans = _spans(node)
    if len(spans) == 1:
        empty = "[]" if isinstance(node, SequenceNode) else "{}"
        return text[: _index(node)] + empty + text[_index(node, end=True) :]
    if at + 1 < len(spans):
        return text[: spans[at][0]] + text[spans[at + 1][0] :]
    before = text[spans[at - 1][1] : spans[at][0]].rstrip()
    # A comma before a comment may stay, and the comment has to.
    return text[: spans[at - 1][1]] + (before if "#" in before else "") + text[spans[at][1] :]


def replaced(text: str, value: Node, new: object) -> str:
    """Return the text with another value in the place of one."""
    shown = json.dumps(new, ensure_ascii=False)
    return text[: _index(value)] + shown + text[_index(value, end=True) :]


def _written(added: Any) -> str:  # noqa: ANN401 - YAML
    """Return entries as they stand inside braces or brackets."""
    inside = json.dumps(added, ensure_ascii=False)[1:-1]
    return inside if is_array(added) else inside.strip()


def _spans(node: MappingNode | SequenceNode) -> Sequence[Span]:
    if isinstance(node, MappingNode):
        return [(_index(key), _index(value, end=True)) for key, value in node.value]
    return [(_index(item), _index(item, end=True)) for item in node.value]


def _index(node: Node, *, end: bool = False) -> int:
    mark = node.end_mark if end else node.start_mark
    return mark.index


def _indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]
