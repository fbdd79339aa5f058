"""One call, traced by its client, by us and by its server, is one tree."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from aggregator.basics.eras import Era
from aggregator.records.conventions import code_label, method_label
from aggregator.records.tracing import open_tracer
from tests.cli.warm import warm_python
from tests.patience import PATIENCE
from tests.records.collector import Collector, Received, collecting

ROOT = Path(__file__).parent.parent.parent
SERVER = Path(__file__).parent / "traced_server.py"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CANARY = "canary-argument"
VERSIONS: dict[Era, str] = {"handshake": "2025-11-25", "modern": "2026-07-28"}
KIND_SERVER, KIND_CLIENT = 2, 3

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


def environment(collector: Collector, home: Path) -> dict[str, str]:
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("OTEL_")},
        "HOME": str(home),
        "XDG_STATE_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }


def configure(home: Path, era: Era, url: str | None = None) -> Path:
    path = home / "servers.yaml"
    started = {
        "command": [sys.executable, str(SERVER), era],
        "env": {"OTEL_EXPORTER_OTLP_ENDPOINT": "${OTEL_EXPORTER_OTLP_ENDPOINT}"},
    }
    servers = {"behind": started if url is None else {"url": url}}
    path.write_text(json.dumps({"servers": servers}), encoding="utf-8")
    return path


@contextmanager
def behind_stdio(_era: Era, _variables: dict[str, str]) -> Generator[None]:
    """Leave the server to whoever is configured to start it."""
    yield


@contextmanager
def behind_http(era: Era, variables: dict[str, str]) -> Generator[str]:
    """Run the server, and say where it is."""
    command = [sys.executable, str(SERVER), era, "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def modern(params: dict[str, Any]) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSIONS["modern"],
        "io.modelcontextprotocol/clientInfo": {"name": "somebody", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {**params, "_meta": {**meta, **params.get("_meta", {})}}


HELLO = {
    "protocolVersion": VERSIONS["handshake"],
    "capabilities": {},
    "clientInfo": {"name": "somebody", "version": "1"},
}


@contextmanager
def over_stdio(config: Path, variables: dict[str, str], era: Era) -> Generator[Ask]:
    command = [warm_python(), "-m", "aggregator", "serve", "--config", str(config)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout
        numbers = iter(range(1, 100))

        def write(message: dict[str, Any]) -> None:
            stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            stdin.flush()

        def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            number = next(numbers)
            sent = modern(params) if era == "modern" else params
            write({"id": number, "method": method, "params": sent})
            while (answer := json.loads(stdout.readline())).get("id") != number:
                pass
            return answer

        if era == "handshake":
            ask("initialize", HELLO)
            write({"method": "notifications/initialized"})
        yield ask
        stdin.close()
        process.wait(timeout=PATIENCE)


def answer_in(lines: Iterable[bytes]) -> dict[str, Any]:
    """Return the answer that a response has, plain or in a stream of events."""
    texts = (line.removeprefix(b"data:").strip() for line in lines)
    messages = (json.loads(text) for text in texts if text.startswith(b"{"))
    return next((each for each in messages if "id" in each), dict[str, Any]())


@contextmanager
def over_http(config: Path, variables: dict[str, str], era: Era) -> Generator[Ask]:
    command = [warm_python(), "-m", "aggregator", "serve", "--config", str(config)]
    with subprocess.Popen(
        [*command, "--http", "0", "--no-auth"], stderr=subprocess.PIPE, text=True, env=variables
    ) as process:
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        url = next(filter(None, (re.search(r"http://\S+", line) for line in said)))[0]
        opener = build_opener(ProxyHandler({}))
        session: dict[str, str] = {}
        numbers = iter(range(1, 100))

        def post(message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
            usual = {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                **session,
                **headers,
            }
            body = json.dumps({"jsonrpc": "2.0", **message}).encode()
            with opener.open(Request(url, body, usual), timeout=PATIENCE) as answer:  # noqa: S310
                if found := answer.headers.get("mcp-session-id"):
                    session["Mcp-Session-Id"] = found
                return answer_in(answer)

        def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
            headers = {"MCP-Protocol-Version": VERSIONS[era]}
            if era == "modern":
                headers["Mcp-Method"] = method
                params = modern(params)
                if "name" in params:
                    headers["Mcp-Name"] = params["name"]
            return post({"id": next(numbers), "method": method, "params": params}, headers)

        if era == "handshake":
            ask("initialize", HELLO)
            post({"method": "notifications/initialized"}, {})
        yield ask
        process.terminate()
        process.communicate(timeout=PATIENCE)


def one(collector: Collector, service: str, kind: int, name: str) -> Received:
    (found,) = (
        each
        for each in collector.spans
        if (each.service, each.kind, each.name) == (service, kind, name) and each.trace == TRACE
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("behind", [behind_stdio, behind_http])
@pytest.mark.parametrize("way", [over_stdio, over_http])
def test_a_call_is_one_tree_from_the_client_to_the_server(
    way: Any, behind: Any, client_era: Era, server_era: Era, tmp_path: Path
) -> None:
    with collecting() as collector:
        variables = environment(collector, tmp_path)
        with (
            behind(server_era, variables) as url,
            way(configure(tmp_path, server_era, url), variables, client_era) as ask,
        ):
            meta = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            params = {"name": "behind__add", "arguments": {"text": CANARY}, "_meta": meta}
            result = ask("tools/call", params)["result"]
            assert result["content"][0]["text"] == "canary-result"
            collector.wait(lambda: len([e for e in collector.spans if e.trace == TRACE]) >= 3)

    ours = "mcp-tool-aggregator"
    served = one(collector, ours, KIND_SERVER, "tools/call behind__add")
    sent = one(collector, ours, KIND_CLIENT, "tools/call add")
    there = one(collector, "behind", KIND_SERVER, "tools/call add")
    assert served.parent == SPAN
    assert sent.parent == served.span
    assert there.parent == sent.span
    assert served.attributes["mcp.method.name"] == "tools/call"
    assert served.attributes["gen_ai.tool.name"] == "behind__add"
    assert served.attributes["gen_ai.operation.name"] == "execute_tool"
    assert served.attributes["network.transport"] == ("pipe" if way is over_stdio else "tcp")
    assert served.attributes["mcp.protocol.version"] == VERSIONS[client_era]
    assert sent.attributes["mcp.protocol.version"] == VERSIONS[server_era]
    assert sent.attributes["aggregator.server"] == "behind"
    assert sent.attributes["network.transport"] == ("pipe" if behind is behind_stdio else "tcp")
    assert not any(each.failed for each in (served, sent))
    durations = {"mcp.server.operation.duration", "mcp.client.operation.duration"}
    assert collector.measurements >= durations
    everything = b"".join(collector.bodies)
    assert CANARY.encode() not in everything
    assert b"canary-result" not in everything


@pytest.mark.slow
def test_what_goes_wrong_is_told_by_its_kind_alone(tmp_path: Path) -> None:
    with collecting() as collector:
        config = configure(tmp_path, "modern")
        with over_stdio(config, environment(collector, tmp_path), "modern") as ask:
            ask("tools/call", {"name": "behind__add", "arguments": {"fail": True}})
            ask("tools/call", {"name": CANARY, "arguments": {}})
            ask(f"made/up-{CANARY}", {})

    spans = [each for each in collector.spans if each.service != "behind"]
    failed = [each for each in spans if each.failed]
    errors = [(each.name, each.attributes["error.type"]) for each in failed]
    assert sorted(errors) == [
        ("other", "-32601"),
        ("tools/call", "-32602"),
        ("tools/call add", "tool_error"),
        ("tools/call behind__add", "tool_error"),
    ]
    assert CANARY.encode() not in b"".join(collector.bodies)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_SERVICE_NAME": "somebody"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
        },
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        },
    ],
)
def test_without_a_place_to_send_them_to_no_spans_are_made(variables: dict[str, str]) -> None:
    assert open_tracer(variables) is None


def test_what_anybody_can_make_up_is_told_together() -> None:
    assert [method_label(each) for each in ("tools/call", "server/discover", f"made/{CANARY}")] == [
        *("tools/call", "server/discover", "other")
    ]
    assert [code_label(each) for each in (-32602, -32042, 4711, -32099)] == [
        *("-32602", "-32042", "_OTHER", "_OTHER")
    ]


def test_nothing_of_it_is_loaded_where_nobody_asks_for_it() -> None:
    program = (
        "import sys, aggregator.cli.serve, aggregator.upstream.http.serving\n"
        "from aggregator.records.tracing import open_tracer\n"
        "assert open_tracer({}) is None\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')\n"
        "       or name.startswith('opentelemetry.exporter')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout.strip() == b"[]"
