"""A model API on the loopback."""

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.host.vendors import Api, Json, RefusedError


@contextmanager
def serving(api: Any, *script: Sequence[Json]) -> Generator[str, None, None]:
    """Serve an API whose model says what a script says, a turn at a time."""
    turns = iter(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            betas = self.headers.get("anthropic-beta")
            headers = {"extra_headers": {"anthropic-beta": betas}} if betas else {}
            try:
                status, answer = 200, api.create(next(turns), **body, **headers)
            except RefusedError as error:
                status, answer = 400, {"type": "error", "error": {"message": str(error)}}
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    assert isinstance(api, Api)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
