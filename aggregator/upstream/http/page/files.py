"""The files of the page, as they come with the package: read once, and known by their hashes.

They are the same for everybody and say nothing of anybody, so whoever asks may have them.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PAGE = "/"
FILES = "/page/"
"""What the addresses of all other files begin with."""

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    # What a server says can then not become markup, not even by a mistake of ours.
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""What all that a browser is given says of itself."""


class File:
    """One file, as an answer."""

    def __init__(self, name: str, content: bytes) -> None:
        self._content = content
        self._tag = f'"{sha256(content).hexdigest()[:32]}"'
        self._type = TYPES[name.rpartition(".")[2]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, unless the browser has it already."""
        headers = {**HEADERS, "cache-control": "no-cache", "etag": self._tag}
        known = [value for name, value in scope["headers"] if name == b"if-none-match"]
        if any(self._tag.encode() in value for value in known):
            response = Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        else:
            response = Response(self._content, headers={**headers, "content-type": self._type})
        await response(scope, receive, send)


def read_files() -> dict[str, File]:
    """Return each file by its path."""
    root = resources.files("aggregator.upstream.http.page") / "static"
    return {
        PAGE if file.name == "index.html" else f"{FILES}{name}": File(name, file.read_bytes())
        for name, file in _files(root)
    }


def _files(directory: Traversable, before: str = "") -> Iterator[tuple[str, Traversable]]:
    for each in directory.iterdir():
        if each.is_dir():
            yield from _files(each, f"{before}{each.name}/")
        elif each.name.rpartition(".")[2] in TYPES:
            yield f"{before}{each.name}", each
