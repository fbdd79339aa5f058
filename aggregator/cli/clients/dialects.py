"""Variables as clients write them, turned into ours: always a reference, never a value."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aggregator.clients.client import VariableStyle

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DEFAULT = r"(?::-(?P<default>(?:[^{}]|\$\{[^{}]*\})*))?"

PATTERNS: dict[VariableStyle, str] = {
    "secrets": rf"\$\{{\{{\s*(?:secrets|inputs)\.(?P<secret>{_NAME})\s*\}}\}}",
    "place": r"\$\{(?P<place>userHome|workspaceFolder|workspaceFolderBasename|pathSeparator|/)\}",
    "input": r"\$\{input:(?P<input>[^}]+)\}",
    "file": r"\$\{file:(?P<file>[^}]+)\}",
    "env": rf"\$\{{env:(?P<env>{_NAME})\}}",
    "braces": rf"\$\{{(?P<name>{_NAME}){_DEFAULT}\}}",
    "bare": rf"\$(?P<bare>{_NAME})",
    "percent": rf"%(?P<percent>{_NAME})%",
    "curly": rf"\{{env:(?P<curly>{_NAME})\}}|\{{file:(?P<contents>[^}}]+)\}}",
}
"""The ways to write a variable, the more particular first."""

_LITERAL = re.compile(r"\$(?=[${])")


@dataclass
class Dialect:
    """Translates texts of one file, and notes what a person has to see to."""

    ways: Sequence[VariableStyle]
    home: Path
    project: Path
    notes: list[str] = field(default_factory=list[str])

    def translate(self, text: str) -> str:
        """Return a text in which variables are written our way, and nothing else looks like one."""
        parts: list[str] = []
        position = 0
        for found in self._found(text):
            # A dollar before a variable must not become a part of it.
            before = _escaped(text[position : found.start()] + "$")[:-1]
            parts += [before, self._ours(found)]
            position = found.end()
        return "".join([*parts, _escaped(text[position:])])

    def _found(self, text: str) -> Iterable[re.Match[str]]:
        if not self.ways:
            return ()
        return re.finditer("|".join(PATTERNS[way] for way in PATTERNS if way in self.ways), text)

    def _ours(self, found: re.Match[str]) -> str:
        kind = found.lastgroup if found.lastgroup != "default" else "name"
        written = found[kind or 0]
        translate = _OTHERS.get(kind or "")
        if translate is not None:
            return translate(self, written)
        default = found.groupdict().get("default")
        return f"${{{written}}}" if default is None else f"${{{written}:-{default}}}"

    def asked_for(self, identifier: str) -> str:
        """Return a variable for what a client asks the person."""
        name = variable_name(identifier)
        self.notes.append(f"set `{name}`, which the client asked you for")
        return f"${{{name}}}"

    def in_file(self, path: str) -> str:
        """Return a variable for what a client reads from a file."""
        name = variable_name(Path(path).stem)
        self.notes.append(f"set `{name}` to what is in `{path}`")
        return f"${{{name}}}"

    def at(self, place: str) -> str:
        """Return a place; the home directory stays a variable, as files are shared."""
        if place.startswith("workspaceFolder"):
            self.notes.append(f"`${{{place}}}` became `{self.project}`, also for other projects")
        places = {
            "userHome": "${HOME}",
            "workspaceFolder": _escaped(str(self.project)),
            "workspaceFolderBasename": _escaped(self.project.name),
        }
        return places.get(place, "/")


_OTHERS: dict[str, Callable[[Dialect, str], str]] = {
    "input": Dialect.asked_for,
    "file": Dialect.in_file,
    "contents": Dialect.in_file,
    "place": Dialect.at,
}


def variable_name(text: str) -> str:
    """Return a name for an environment variable that reminds of a text."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper() or "VALUE"
    return f"_{name}" if name[0].isdigit() else name


def _escaped(text: str) -> str:
    return _LITERAL.sub("$$", text)
