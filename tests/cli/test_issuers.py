"""`aggregator check` says whether people could log in."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from aggregator.cli.environment import ExitStatus
from tests.cli.shell import Shell
from tests.cli.test_running import SERVERS
from tests.upstream.http.issuer.issuing import OPENID, signer

HTTP = """
  away: {{url: "http://127.0.0.1:9/mcp", enabled: {enabled}}}
http:
  issuer: {issuer}
  audience: https://tools.example.com/mcp
  access: [{{scope: tools.all, allow: "*"}}]
"""


@contextmanager
def issuing() -> Generator[str]:
    """Publish keys as an issuer does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            described = {"issuer": origin, "jwks_uri": f"{origin}/keys"}
            told = {OPENID: described, "/keys": {"keys": [signer().published()]}}
            self.send_response(200 if self.path in told else 404)
            self.end_headers()
            self.wfile.write(json.dumps(told.get(self.path)).encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library has it
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        origin = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield origin
        finally:
            server.shutdown()
            thread.join()


def test_check_says_that_an_issuer_has_no_keys_for_us(shell: Shell) -> None:
    shell.write_servers(SERVERS + HTTP.format(issuer="http://127.0.0.1:9", enabled="false"))

    ran = shell.run("check")

    assert ran.status is ExitStatus.ERROR
    assert "no keys of the issuer `http://127.0.0.1:9`" in " ".join(ran.out.split())


def test_check_says_nothing_of_an_issuer_that_has_some(shell: Shell) -> None:
    with issuing() as issuer:
        shell.write_servers(SERVERS + HTTP.format(issuer=issuer, enabled="false"))
        ran = shell.run("check", "--json")

    assert ran.status is ExitStatus.FINE
    assert json.loads(ran.out)["findings"] == []


def test_check_says_which_servers_are_for_nobody_else(shell: Shell) -> None:
    with issuing() as issuer:
        shell.write_servers(SERVERS + HTTP.format(issuer=issuer, enabled="true"))
        ran = shell.run("check", "--json", "--wait", "1")

    found = [(each["server"], each["text"]) for each in json.loads(ran.out)["findings"]]
    (told,) = [text for server, text in found if server == "away" and "your login" in text]
    assert "`shared: true`" in told
