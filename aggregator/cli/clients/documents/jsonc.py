"""JSON as people keep it: with comments and trailing commas, which survive an edit."""

import json
import re
from collections.abc import Sequence
from typing import Any

from aggregator.basics.frozen import frozen
from aggregator.basics.json import is_plain_object
from aggregator.basics.jsonc import GAP
from aggregator.cli.clients.documents.trees import Tree

_SCALAR = re.compile(r"[-+.\w]+")
_DECODER = json.JSONDecoder(strict=False)
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


@frozen(slots=False)
class Node:
    """A value and where it stands."""

    start: int
    end: int
    value: Any
    members: "tuple[Member, ...]" = ()
    """What an object holds."""

    @property
    def is_object(self) -> bool:
        """Whether it can hold members."""
        return isinstance(self.value, dict)

    def member(self, key: str) -> "Member | None":
        """Return the member of this name; of several, the last counts."""
        return next((each for each in reversed(self.members) if each.key == key), None)


@frozen(slots=False)
class Member:
    """A key of an object, and its value."""

    key: str
    start: int
    node: Node


def read(text: str) -> Tree:
    """Return what the text says.

    Raises:
        ValueError: It is not a JSON object.
    """
    if not _after_space(text, 0) < len(text):
        return {}
    value = _parse(text).value
    if not is_plain_object(value):
        raise ValueError("it is not an object")
    return value


def put(text: str, path: Sequence[str], value: object, _listed: bool = False) -> str:
    """Return the text with a value at a path."""
    if not _after_space(text, 0) < len(text):
        text = "{\n}\n"
    node, rest = _descend(_parse(text), path)
    unit = _unit(text)
    if not rest:
        shown = _dumped(value, unit, _indent_at(text, node.start))
        return _ended(text[: node.start] + shown + text[node.end :], text)
    for key in reversed(rest[1:]):
        value = {key: value}
    return _ended(_inserted(text, node, rest[0], value, unit), text)


def drop(text: str, path: Sequence[str]) -> str:
    """Return the text with nothing at a path."""
    node, rest = _descend(_parse(text), path[:-1])
    member = node.member(path[-1])
    if rest or member is None:
        raise KeyError(path[-1])
    comma = _comma(text, member.node.end)
    if member is not node.members[-1]:
        end = comma + 1
        return text[: member.start] + text[end:].lstrip(" \t\r\n")
    return _without_last(text, node, member, comma)


def _without_last(text: str, node: Node, member: Member, comma: int) -> str:
    before, end = text[: member.start].rstrip(), max(member.node.end, comma + 1)
    if len(node.members) > 1 and comma < 0:
        last = node.members[-2].node.end
        at = _comma(text, last)
        before = before[:at] + before[at + 1 :]
    after = text[end:]
    if len(node.members) == 1 and before.endswith("{") and after.lstrip().startswith("}"):
        after = after.lstrip()
    return before + after


def _inserted(text: str, node: Node, key: str, value: object, unit: str) -> str:
    """Put a member at the end of an object."""
    close = node.end - 1
    # After the last comment, which belongs to what is there already.
    tail = len(text[:close].rstrip())
    is_one_line = bool(node.members) and "\n" not in text[node.start : node.end]
    if is_one_line:
        comma = "" if _comma(text, node.members[-1].node.end) >= 0 else ","
        return f"{text[:tail]}{comma} {json.dumps(key)}: {json.dumps(value)}{text[tail:]}"
    outer = _indent_at(text, node.start)
    indent = _indent_at(text, node.members[0].start) if node.members else outer + unit
    added = f"\n{indent}{_string(key)}: {_dumped(value, unit, indent)}"
    trailing = False
    head = text[:tail]
    if node.members:
        last = node.members[-1].node.end
        trailing = _comma(text, last) >= 0
        head = head if trailing else f"{text[:last]},{text[last:tail]}"
    rest = text[tail:] if "\n" in text[tail:close] else f"\n{outer}{text[close:]}"
    return f"{head}{added}{',' if trailing else ''}{rest}"


def _descend(node: Node, path: Sequence[str]) -> tuple[Node, list[str]]:
    """Return the deepest value on a path, and what of the path is not there."""
    for at, key in enumerate(path):
        member = node.member(key)
        if member is None or (at < len(path) - 1 and not member.node.is_object):
            return node, list(path[at:])
        node = member.node
    return node, []


def _dumped(value: object, unit: str, indent: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _unit(text: str) -> str:
    """Return what the text is indented with."""
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _indent_at(text: str, position: int) -> str:
    """Return what the line of a position is indented with."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


def _ended(changed: str, text: str) -> str:
    """Return the text with the line ends it had."""
    return re.sub(r"(?<!\r)\n", "\r\n", changed) if "\r\n" in text else changed


def _comma(text: str, position: int) -> int:
    """Return where the comma after a value stands, or a negative number."""
    at = _after_space(text, position)
    return at if text[at : at + 1] == "," else -1


def _after_space(text: str, position: int) -> int:
    found = GAP.match(text, position)
    return found.end() if found else position


def _parse(text: str) -> Node:
    try:
        node = _node(text, _after_space(text, 0))
    except (IndexError, RecursionError):
        raise ValueError(f"it ends too early, in line {_line(text.rstrip(), len(text))}") from None
    if _after_space(text, node.end) < len(text):
        raise ValueError("there is more after its end")
    return node


def _node(text: str, start: int) -> Node:
    match text[start]:
        case "{":
            return _object(text, start)
        case "[":
            return _array(text, start)
        case '"':
            return Node(start, *_text(text, start))
        case _:
            return _scalar(text, start)


def _scalar(text: str, start: int) -> Node:
    found = _SCALAR.match(text, start)
    try:
        return Node(start, found.end() if found else start, json.loads(found[0] if found else ""))
    except ValueError:
        raise ValueError(f"line {_line(text, start)} is not JSON") from None


def _text(text: str, start: int) -> tuple[int, str]:
    """Return where a string ends, and what it says."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {_line(text, start)} has a string that is not JSON") from error
    return end, value


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _object(text: str, start: int) -> Node:
    members: list[Member] = []
    position = _after_space(text, start + 1)
    while text[position] != "}":
        if text[position] != '"':
            raise ValueError(f"line {_line(text, position)} is not JSON")
        end, key = _text(text, position)
        colon = _after_space(text, end)
        if text[colon] != ":":
            raise ValueError(f"line {_line(text, colon)} lacks a colon")
        member = Member(key, position, _node(text, _after_space(text, colon + 1)))
        members.append(member)
        position = _separated(text, member.node.end, "}")
    value = {member.key: member.node.value for member in members}
    return Node(start, position + 1, value, tuple(members))


def _array(text: str, start: int) -> Node:
    items: list[Any] = []
    position = _after_space(text, start + 1)
    while text[position] != "]":
        item = _node(text, position)
        items.append(item.value)
        position = _separated(text, item.end, "]")
    return Node(start, position + 1, items)


def _separated(text: str, end: int, closing: str) -> int:
    """Return where the next item begins, or where the closing bracket stands."""
    position = _after_space(text, end)
    if text[position] == ",":
        return _after_space(text, position + 1)
    if text[position] != closing:
        raise ValueError(f"line {_line(text, position)} lacks a comma")
    return position
