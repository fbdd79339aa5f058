"""How help is laid out on a page of any width: nothing is broken but between words."""

import argparse
import re
from collections.abc import Iterator

from aggregator.cli.paper import fill, width_of

INDENT = "  "
_SPACES = re.compile(r"\s+")


class Layout(argparse.RawDescriptionHelpFormatter):
    """Has addresses and commands whole, where argparse would break them at any sign."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return fill(_SPACES.sub(" ", text).strip(), width, hanging="").split("\n")

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Name what an option takes once, and not behind each of its names."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        takes = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {takes}"


def laid_out(text: str, width: int) -> str:
    """Return help whose first paragraph, which is how it is used, fits the page.

    Where that has several lines they are made anew: each version of argparse has its own.
    """
    usage, blank, rest = text.partition("\n\n")
    if width_of(usage) <= width and "\n" not in usage:
        return text
    return "\n".join(_wrapped(usage, width)) + blank + rest


def _wrapped(usage: str, width: int) -> Iterator[str]:
    """Yield lines that end between options; what is in brackets stands on one if it fits."""
    usage = _SPACES.sub(" ", usage).strip()
    command, option, _ = usage.partition("[")
    indent = " " * len(command) if option and len(command) <= width // 3 else INDENT
    line = ""
    for part in _parts(usage, width - len(indent)):
        longer = f"{line} {part}" if line else part
        if line and width_of(longer) > width:
            yield line
            longer = indent + part
        line = longer
    yield line


def _parts(usage: str, room: int) -> Iterator[str]:
    """Yield what may stand on a line of its own."""
    depth, part = 0, ""
    for word in usage.split(" "):
        part = f"{part} {word}" if part else word
        depth += sum(map(word.count, "[(")) - sum(map(word.count, "])"))
        if not depth:
            yield from [part] if width_of(part) <= room else re.split(r" (?=\| )", part)
            part = ""
