"""YAML as people write it: lines are added and taken away, the others stay as they are."""

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aggregator.basics.json import is_plain_object
from aggregator.cli.clients.documents import flow
from aggregator.cli.clients.documents.trees import Tree
from aggregator.config.complaints import complaint

Holder = MappingNode | SequenceNode

_WIDTH = 90
"""Characters up to which a list stands on one line."""
_ASIDE = re.compile(r"\s*(?:#.*)?$")
"""A line without content."""
_MERGE = "tag:yaml.org,2002:merge"


def read(text: str) -> Tree:
    """Return what the text says.

    Raises:
        ValueError: It is not a YAML mapping.
    """
    try:
        value: object = yaml.load(text, _Loader)  # noqa: S506 - it is a safe one
    except yaml.YAMLError as error:
        raise ValueError(_explained(error)) from None
    if value is None:
        return {}
    if not is_plain_object(value):
        raise ValueError("it is not a mapping")
    return value


def _explained(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        found = complaint(error)
        return f"{found.problem}, in line {found.line}"
    return str(error).partition("\n")[0]


class _Loader(yaml.SafeLoader):
    """Reads `on:` and `1:` as the names they are."""

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        named = [(_as_name(key), value) for key, value in node.value]
        renamed = MappingNode(node.tag, named, node.start_mark, node.end_mark)
        return super().construct_mapping(renamed, deep)


def _as_name(key: Node) -> Node:
    if not isinstance(key, ScalarNode) or key.tag == _MERGE:
        return key
    return ScalarNode("tag:yaml.org,2002:str", key.value, key.start_mark, key.end_mark)


def put(text: str, path: Sequence[str], value: object, listed: bool = False) -> str:
    """Return the text with a value at a path; one that is there already is replaced in place."""
    plain = _plain(text)
    return _ended(_put(plain, path, value, listed=listed), text)


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text with nothing at a path, nor the comment right above."""
    plain = _plain(text)
    return _ended(_drop(plain, path), text)


def _plain(text: str) -> str:
    """Return the text with the line ends that the rest of this room knows."""
    return text.replace("\r\n", "\n") if _has_long_ends(text) else text


def _ended(changed: str, text: str) -> str:
    """Return the text with the line ends it had."""
    return changed.replace("\n", "\r\n") if _has_long_ends(text) else changed


def _has_long_ends(text: str) -> bool:
    return 0 < text.count("\n") == text.count("\r\n")


def _put(text: str, path: Sequence[str], value: object, *, listed: bool) -> str:
    root = _composed(text)
    if root is None:
        return _appended(text, _nested(path, value, listed=listed))
    if _find(root, path) is not None:
        return _replaced(text, root, path, value, listed=listed)
    node, rest = root, list(path)
    while len(rest) > 1 and (child := _child(node, rest[0])) is not None and not _is_null(child):
        node, rest = child, rest[1:]
    if len(rest) > 1 and (key := _key(node, rest[0])) is not None:
        return _under(text, node, key, _nested(rest[1:], value, listed=listed))
    if node is root and isinstance(value, str) and (section := _first_section(root)):
        return _before(text, section, {rest[0]: value})
    return _inserted(text, node, _nested(rest, value, listed=listed))


def _first_section(root: Node) -> Node | None:
    """Return the key of the first entry of a file that is more than a setting."""
    if not isinstance(root, MappingNode) or root.flow_style:
        return None
    return next((key for key, of in root.value if not isinstance(of, ScalarNode)), None)


def _before(text: str, key: Node, entry: dict[str, str]) -> str:
    """Put a setting before a section: behind it, it would part it from examples that follow."""
    lines = text.splitlines(keepends=True)
    first, column = key.start_mark.line, key.start_mark.column
    return "".join([*lines[:first], _indented(_dumped(entry), column), *lines[first:]])


def _replaced(text: str, root: Node, path: Sequence[str], value: object, *, listed: bool) -> str:
    holder = _find(root, path[:-1])
    if not isinstance(holder, MappingNode):
        return _put(_drop(text, path), path, value, listed=listed)
    if holder.flow_style:
        return flow.replaced(
            text, next(of for key, of in holder.value if _is(key, path[-1])), value
        )
    lines = text.splitlines(keepends=True)
    first, last = _content(lines, holder, _position(holder, path[-1]))
    block = _indented(_dumped({path[-1]: value}), _column(holder))
    return "".join([*lines[:first], block, *lines[last:]])


def _drop(text: str, path: Sequence[str]) -> str:
    root = _composed(text)
    holder = _find(root, path[:-1])
    if not isinstance(holder, MappingNode | SequenceNode):
        raise KeyError(path[-1])
    at = _position(holder, path[-1])
    if holder.flow_style:
        return flow.without(text, holder, at)
    if len(holder.value) == 1:
        text = _emptied(text, root, path[:-1], holder)
    lines = text.splitlines(keepends=True)
    first, last = _content(lines, holder, at)
    indent = _indentation(lines[first])
    while _is_comment(lines[first - 1]) and _indentation(lines[first - 1]) == indent and first:
        first -= 1
    return "".join(_closed(lines, first, last))


def _closed(lines: Sequence[str], first: int, last: int) -> list[str]:
    """Return the lines without some of them, and without the gap they leave."""
    blank_before = first > 0 and not lines[first - 1].strip()
    while blank_before and last < len(lines) and not lines[last].strip():
        last += 1
    while last == len(lines) and first > 0 and not lines[first - 1].strip():
        first -= 1
    return [*lines[:first], *lines[last:]]


def _emptied(text: str, root: Node | None, path: Sequence[str], holder: Holder) -> str:
    """Say of what is about to lose its only entry that it is empty; no line is added."""
    parent = _find(root, path[:-1]) if path else None
    key = _key(parent, path[-1]) if parent is not None else None
    if key is None:
        raise KeyError(path)
    colon = text.index(":", key.end_mark.index) + 1
    empty = "[]" if isinstance(holder, SequenceNode) else "{}"
    return f"{text[:colon]} {empty}{text[colon:]}"


def _content(lines: Sequence[str], holder: Holder, at: int) -> tuple[int, int]:
    """Return the lines of an entry, with the comments that are indented as its keys are."""
    starts = [line for _, line in _starts(holder)]
    first = starts[at]
    last = starts[at + 1] if at + 1 < len(starts) else _limit(lines, holder)
    while last > first + 1 and _ASIDE.match(lines[last - 1]):
        last -= 1
    return first, _with_comments(lines, last, _indentation(lines[first]))


def _with_comments(lines: Sequence[str], last: int, indent: int) -> int:
    """Return the line after the comments that are indented by more."""
    while last < len(lines) and _is_comment(lines[last]) and _indentation(lines[last]) > indent:
        last += 1
    return last


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


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
    end = _end(lines, node)
    if lines and not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    gap = "\n" if _has_gaps(lines, node) else ""
    block = gap + _indented(_dumped(added), _column(node))
    return "".join([*lines[:end], block, *lines[end:]])


def _inserted_in_flow(text: str, node: Holder, added: Any) -> str:  # noqa: ANN401 - YAML
    if node.value:
        return flow.inserted(text, node, added)
    start, end = node.start_mark.index, node.end_mark.index
    line = _line_end(text, end)
    block = _indented(_dumped(added), _line_indent(text, start) + 2).rstrip("\n")
    # A comment on the line stays on it.
    return f"{text[:start].rstrip()}{text[end:line]}\n{block}{text[line:]}"


def _under(text: str, parent: Node, key: Node, added: Any) -> str:  # noqa: ANN401 - YAML
    """Put a block under a key that holds nothing yet."""
    lines = text.splitlines(keepends=True)
    at = key.end_mark.line + 1
    if not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    block = _indented(_dumped(added), _column(parent) + 2)
    return "".join([*lines[:at], block, *lines[at:]])


def _composed(text: str) -> Node | None:
    return yaml.SafeLoader(text).get_single_node()


def _find(root: Node | None, path: Sequence[str]) -> Node | None:
    node = root
    for key in path:
        node = None if node is None else _child(node, key)
    return node


def _child(node: Node, name: str) -> Node | None:
    if isinstance(node, MappingNode):
        return next((value for key, value in node.value if _is(key, name)), None)
    if isinstance(node, SequenceNode):
        return next((item for item in node.value if _name(item) == name), None)
    return None


def _key(node: Node, name: str) -> Node | None:
    if not isinstance(node, MappingNode):
        return None
    return next((key for key, _ in node.value if _is(key, name)), None)


def _is(key: Node, name: str) -> bool:
    return isinstance(key, ScalarNode) and key.value == name


def _position(holder: Holder, name: str) -> int:
    """Return which of its entries has a name.

    Raises:
        LookupError: None has.
    """
    names = [each for each, _ in _starts(holder)]
    if name not in names:
        raise LookupError(name)
    return names.index(name)


def _starts(holder: Holder) -> list[tuple[str, int]]:
    """Return the name and the first line of each entry."""
    if isinstance(holder, MappingNode):
        return [(key.value, key.start_mark.line) for key, _ in holder.value]
    return [(_name(item), item.start_mark.line) for item in holder.value]


def _name(item: Node) -> str:
    found = _child(item, "name") if isinstance(item, MappingNode) else None
    return found.value if isinstance(found, ScalarNode) else ""


def _column(node: Node) -> int:
    """Return where the entries of a block begin; an anchor may stand before it."""
    is_mapping = isinstance(node, MappingNode) and node.value
    first = node.value[0][0] if is_mapping else node
    return first.start_mark.column


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _end(lines: Sequence[str], node: Node) -> int:
    """Return the line after the last one of a block, and after what is commented out in it."""
    end = _limit(lines, node)
    while end and _ASIDE.match(lines[end - 1]):
        end -= 1
    return _with_comments(lines, end, _column(node))


def _limit(lines: Sequence[str], node: Node) -> int:
    """Return the line after those that a block may take."""
    mark = node.end_mark
    # A last line without an end is the block's own.
    is_unended = mark.line < len(lines) and 0 < len(lines[mark.line]) <= mark.column
    end = mark.line + 1 if is_unended else mark.line
    return min(end or len(lines), len(lines))


def _has_gaps(lines: Sequence[str], node: Holder) -> bool:
    """Return whether the entries of a block are set apart by empty lines."""
    starts = [line for _, line in _starts(node)][1:]
    return bool(starts) and all(_above(lines, start) for start in starts)


def _above(lines: Sequence[str], start: int) -> bool:
    while start and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return start > 0 and not lines[start - 1].strip()


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


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
