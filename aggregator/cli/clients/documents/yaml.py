"""YAML as people write it: lines are added and taken away, the others stay as they are."""

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aggregator.cli.clients.documents.trees import Tree, others
from aggregator.json import is_array, is_plain_object

Holder = MappingNode | SequenceNode

_WIDTH = 90
"""Characters up to which a list stands on one line."""
_ASIDE = re.compile(r"\s*(?:#.*)?$")
"""A line without content."""


def read(text: str) -> Tree:
    """Return what the text says.

    Raises:
        ValueError: It is not a YAML mapping.
    """
    try:
        value: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(_explained(error)) from None
    if value is None:
        return {}
    if not is_plain_object(value):
        raise ValueError("it is not a mapping")
    return value


def _explained(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"{error.problem}, in line {error.problem_mark.line + 1}"
    return str(error).partition("\n")[0]


def put(text: str, path: Sequence[str], value: object, listed: bool = False) -> str:
    """Return the text with a value at a path."""
    root = _composed(text)
    if root is None:
        return _appended(text, _nested(path, value, listed=listed))
    if _find(root, path) is not None:
        return put(drop(text, path), path, value, listed)
    node, rest = root, list(path)
    while len(rest) > 1 and (child := _child(node, rest[0])) is not None and not _is_null(child):
        node, rest = child, rest[1:]
    if len(rest) > 1 and (key := _key(node, rest[0])) is not None:
        return _under(text, node, key, _nested(rest[1:], value, listed=listed))
    return _inserted(text, node, _nested(rest, value, listed=listed))


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text with nothing at a path."""
    root = _composed(text)
    holder = _find(root, path[:-1])
    if not isinstance(holder, MappingNode | SequenceNode):
        raise KeyError(path[-1])
    starts = _starts(holder)
    at = next(at for at, (name, _) in enumerate(starts) if name == path[-1])
    if len(starts) == 1 or holder.flow_style:
        return _rewritten(text, holder, path[-1])
    lines = text.splitlines(keepends=True)
    first = starts[at][1]
    last = starts[at + 1][1] if at + 1 < len(starts) else _end(text, holder)
    # Comments before the next entry are about the next entry.
    while last > first + 1 and _ASIDE.match(lines[last - 1]) and at + 1 < len(starts):
        last -= 1
    blank_before = first > 0 and not lines[first - 1].strip()
    while blank_before and last < len(lines) and not lines[last].strip():
        last += 1
    return "".join(lines[:first] + lines[last:])


def _inserted(text: str, node: Node, added: Any) -> str:  # noqa: ANN401 - YAML
    """Put something at the end of a mapping or a list."""
    match node:
        case MappingNode():
            pass
        case SequenceNode():
            added = list(added.values()) if is_plain_object(added) else added
        case _:
            raise LookupError
    return _inserted_in_flow(text, node, added) if node.flow_style else _as_block(text, node, added)


def _as_block(text: str, node: Holder, added: Any) -> str:  # noqa: ANN401 - YAML
    lines = text.splitlines(keepends=True)
    end = _end(text, node)
    if lines and not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    gap = "\n" if _has_gaps(lines, node) else ""
    block = gap + _indented(_dumped(added), node.start_mark.column)
    return "".join([*lines[:end], block, *lines[end:]])


def _inserted_in_flow(text: str, node: Holder, added: Any) -> str:  # noqa: ANN401 - YAML
    start, end = node.start_mark.index, node.end_mark.index
    if not node.value:
        column = _line_indent(text, start) + 2
        block = _indented(_dumped(added), column).rstrip("\n")
        return f"{text[:start].rstrip()}\n{block}{text[end:]}"
    inside = text[: end - 1].rstrip()
    comma = "" if inside.endswith(",") else ","
    return f"{inside}{comma} {json.dumps(added, ensure_ascii=False)[1:-1]}{text[end - 1 :]}"


def _under(text: str, parent: Node, key: Node, added: Any) -> str:  # noqa: ANN401 - YAML
    """Put a block under a key that holds nothing yet."""
    lines = text.splitlines(keepends=True)
    at = key.end_mark.line + 1
    if not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    block = _indented(_dumped(added), parent.start_mark.column + 2)
    return "".join([*lines[:at], block, *lines[at:]])


def _rewritten(text: str, holder: Holder, name: str) -> str:
    """Write a small mapping or list anew without one of its entries."""
    start, end = holder.start_mark, holder.end_mark
    if holder.flow_style:
        value: Any = yaml.safe_load(text[start.index : end.index])
        if is_array(value):
            kept: object = others(value, name)
        else:
            kept = {key: each for key, each in value.items() if key != name}
        return text[: start.index] + json.dumps(kept, ensure_ascii=False) + text[end.index :]
    lines = text.splitlines(keepends=True)
    empty = "[]" if isinstance(holder, SequenceNode) else "{}"
    last = _end(text, holder)
    head = "".join(lines[: start.line]).rstrip("\n")
    return f"{head} {empty}\n{''.join(lines[last:])}"


def _composed(text: str) -> Node | None:
    return yaml.compose(text, Loader=yaml.SafeLoader)  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]


def _find(root: Node | None, path: Sequence[str]) -> Node | None:
    node = root
    for key in path:
        node = None if node is None else _child(node, key)
    return node


def _child(node: Node, name: str) -> Node | None:
    if isinstance(node, MappingNode):
        return next((value for key, value in node.value if key.value == name), None)
    if isinstance(node, SequenceNode):
        return next((item for item in node.value if _name(item) == name), None)
    return None


def _key(node: Node, name: str) -> Node | None:
    if not isinstance(node, MappingNode):
        return None
    return next((key for key, _ in node.value if key.value == name), None)


def _starts(holder: Holder) -> list[tuple[str, int]]:
    """Return the name and the first line of each entry."""
    if isinstance(holder, MappingNode):
        return [(key.value, key.start_mark.line) for key, _ in holder.value]
    return [(_name(item), item.start_mark.line) for item in holder.value]


def _name(item: Node) -> str:
    found = _child(item, "name") if isinstance(item, MappingNode) else None
    return found.value if isinstance(found, ScalarNode) else ""


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _end(text: str, node: Node) -> int:
    """Return the line after the last one with content of a block."""
    lines = text.splitlines()
    mark = node.end_mark
    end = mark.line + 1 if mark.column and mark.index >= len(text) else mark.line
    end = min(end or len(lines), len(lines))
    while end and _ASIDE.match(lines[end - 1]):
        end -= 1
    return end


def _has_gaps(lines: Sequence[str], node: Holder) -> bool:
    """Return whether the entries of a block are set apart by empty lines."""
    starts = [line for _, line in _starts(node)][1:]
    return bool(starts) and all(_above(lines, start) for start in starts)


def _above(lines: Sequence[str], start: int) -> bool:
    while start and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return start > 0 and not lines[start - 1].strip()


def _line_indent(text: str, position: int) -> int:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return len(line) - len(line.lstrip())


def _nested(path: Sequence[str], value: object, *, listed: bool) -> Any:  # noqa: ANN401 - YAML
    """Return a value inside all that leads to it."""
    *outer, last = path
    nested: Any = [value] if listed else {last: value}
    for key in reversed(outer):
        nested = {key: nested}
    return nested


def _appended(text: str, value: object) -> str:
    start = text if not text or text.endswith("\n") else f"{text}\n"
    return start + _dumped(value)


def _indented(block: str, column: int) -> str:
    pad = " " * column
    return "".join(f"{pad}{line}" if line.strip() else line for line in block.splitlines(True))


class _Dumper(yaml.SafeDumper):
    """Writes lists indented under their key, and short ones on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML names it
        super().increase_indent(flow, indentless=False)


def _represent_list(dumper: yaml.SafeDumper, items: list[Any]) -> SequenceNode:
    plain = not any(isinstance(item, dict | list) for item in items)
    short = plain and len(json.dumps(items)) <= _WIDTH
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Dumper.add_representer(list, _represent_list)


def _dumped(value: object) -> str:
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000, indent=2
    )
