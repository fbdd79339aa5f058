"""Why a server is not there, in words that point at the cause."""

import pytest

from aggregator.downstream.failure import LAST_WORDS, Failure, telling_line
from aggregator.downstream.transport import Line

NODE = """\
node:internal/modules/cjs/loader:1080
  throw err;
  ^

Error: Cannot find module 'express'
Require stack:
- /srv/app.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1077:15)
    at node:internal/main/run_main_module:23:47 {
  code: 'MODULE_NOT_FOUND',
}

Node.js v20.1.0
"""

NODE_MODULES = """\
Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/app.mjs
    at packageResolve (node:internal/modules/esm/resolve:853:9) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v20.1.0
"""

NPM = """\
npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/no-such - Not found
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /root/.npm/_logs/debug-0.log
"""

PYTHON = """\
Traceback (most recent call last):
  File "server.py", line 3, in <module>
    connect()
app.ConnectTimeout: db.example
  waited for 3 s
closing down
"""

RUST = """\
thread 'main' panicked at src/main.rs:4:5:
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""


@pytest.mark.parametrize(
    ("said", "telling"),
    [
        (NODE, "Error: Cannot find module 'express'"),
        (
            NODE_MODULES,
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/app.mjs",
        ),
        (NPM, "npm error 404 Not Found - GET https://registry.npmjs.org/no-such - Not found"),
        (PYTHON, "app.ConnectTimeout: db.example"),
        (RUST, "thread 'main' panicked at src/main.rs:4:5:"),
        ("usage: x [-h]\nx: error: --port is missing\nbye", "x: error: --port is missing"),
        ("fatal: no repository\nhint: look elsewhere", "fatal: no repository"),
        ("panic: nil map\n\ngoroutine 1 [running]:\nmain.main()", "panic: nil map"),
        ("listening\nno errors so far\nclosing", "closing"),
        ("give me a key\n    at start (a.js:1:1)\n}\nNode.js v20.1.0", "give me a key"),
        ("java.lang.Boom: no key\n\\tat Main.main(Main.java:1)", "java.lang.Boom: no key"),
        ("Node.js v20.1.0", "Node.js v20.1.0"),
    ],
)
def test_the_line_that_says_most_is_found_among_the_last(said: str, telling: str) -> None:
    lines = [Line(line) for line in said.splitlines() if line.strip()]

    assert telling_line(lines) == Line(telling)


def test_the_last_lines_are_kept_and_a_long_one_is_cut_in_the_reason() -> None:
    lines = [*map(str, range(100)), "x" * 1000]

    failure = Failure("it exited with status 1").with_words([Line(line) for line in lines])

    assert failure.last_words == tuple(lines[-LAST_WORDS:])
    assert failure.reason == f"it exited with status 1; its last words: {'x' * 300}…"


def test_a_server_that_prints_in_place_of_speaking_is_quoted() -> None:
    said = [Line("loading"), Line("hello world", is_noise=True)]

    failure = Failure("it was not ready within 6 s").with_words(said)

    assert failure.reason == (
        "it was not ready within 6 s; it wrote `hello world` to standard output instead of messages"
    )
