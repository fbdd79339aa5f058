"""One hub beside processes of their own: the first call, every call, and memory.

python -m benchmarks.sharing [ROUNDS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from aggregator.app.hub.report import memory_of as family_of
from benchmarks.measure import ROOT, RawClient, memory_of, percentile, report, spread
from benchmarks.start import BARE

CLIENTS = 5
CALLS = 2_000
TOOL = {"name": "text__count_words", "arguments": {"text": "a few words"}}


def command(*, shared: bool) -> list[str]:
    """Return how a client starts us with the example servers."""
    config = ROOT / "servers.yaml"
    how = ["--shared"] if shared else []
    return [sys.executable, "-m", "aggregator", "serve", *how, "--config", str(config)]


def first(words: list[str], method: str, env: Mapping[str, str]) -> float:
    """Return the seconds from spawn to the first answer of a kind."""
    began = time.perf_counter()
    client = RawClient(words, env)
    client.open()
    client.ask(method, TOOL if method == "tools/call" else {})
    took = time.perf_counter() - began
    client.close()
    return took


def calls(client: RawClient, number: int) -> list[float]:
    """Return the seconds that calls take, one after another."""
    took: list[float] = []
    for _ in range(number):
        began = time.perf_counter()
        client.ask("tools/call", TOOL)
        took.append(time.perf_counter() - began)
    return took


def opened(*, shared: bool, env: Mapping[str, str]) -> RawClient:
    """Return a client whose servers all run."""
    client = RawClient(command(shared=shared), env)
    client.open()
    client.ask("tools/call", {"name": "ToolSearch", "arguments": {"query": "all", "wait": 30}})
    client.ask("tools/call", TOOL)
    return client


def hub_of(env: Mapping[str, str]) -> int:
    """Return the process that is the hub."""
    said = subprocess.run(
        [sys.executable, "-m", "aggregator", "status", "--json"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **env},
    )
    return int(said.stdout.partition('"process": ')[2].partition(",")[0])


def main() -> None:
    rounds = int(sys.argv[1]) if sys.argv[1:] else 15
    with tempfile.TemporaryDirectory() as directory:
        env = {"XDG_RUNTIME_DIR": directory, "XDG_STATE_HOME": directory, "HOME": directory}
        shared = opened(shared=True, env=env)
        # What is known from another run is not started until it is called.
        alone = opened(shared=False, env={**env, "XDG_STATE_HOME": f"{directory}/alone"})
        try:
            starts(rounds, env)
            latencies(alone, shared)
            memory(alone, shared, env)
        finally:
            alone.close()
            shared.close()
            subprocess.run(
                [sys.executable, "-m", "aggregator", "stop"],
                check=False,
                cwd=ROOT,
                env={**os.environ, **env},
                stdout=subprocess.DEVNULL,
            )


def starts(rounds: int, env: Mapping[str, str]) -> None:
    bare = [sys.executable, "-c", BARE]
    took: dict[str, list[float]] = {"bare": [], "list": [], "call": []}
    for _ in range(rounds):
        took["bare"].append(first(bare, "tools/list", env))
        took["list"].append(first(command(shared=True), "tools/list", env))
        took["call"].append(first(command(shared=True), "tools/call", env))
    middle = {name: statistics.median(values) for name, values in took.items()}
    rows = [
        (name, spread(took[key]), f"{middle[key] / middle['bare']:.3f}")
        for name, key in (
            ("bare SDK server, first list", "bare"),
            ("shared, first list", "list"),
            ("shared, first call", "call"),
        )
    ]
    report("From spawn, with a hub running", ("what", "time", "of bare"), rows)


def latencies(alone: RawClient, shared: RawClient) -> None:
    """Compare calls in turns, so that a busy machine is as busy for both."""
    took: dict[str, list[float]] = {"alone": [], "shared": []}
    for _ in range(20):
        took["alone"] += calls(alone, CALLS // 20)
        took["shared"] += calls(shared, CALLS // 20)
    rows = [
        (
            name,
            spread(values),
            f"{statistics.median(values) / statistics.median(took['alone']):.3f}",
            f"{percentile(values, 0.1) / percentile(took['alone'], 0.1):.3f}",
        )
        for name, values in took.items()
    ]
    report("A call", ("how", "time", "p50 of alone", "p10 of alone"), rows)


def memory(alone: RawClient, shared: RawClient, env: Mapping[str, str]) -> None:
    one = (family_of(alone.pid) or 0) / (1 << 20)
    more = [opened(shared=True, env=env) for _ in range(CLIENTS - 1)]
    shims = sum(memory_of(each.pid) for each in (shared, *more))
    hub = (family_of(hub_of(env)) or 0) / (1 << 20)
    for each in more:
        each.close()
    together, apart = hub + shims, CLIENTS * one
    rows = [
        ("each its own", f"{apart:.0f} MiB", "1.00"),
        ("shared", f"{together:.0f} MiB", f"{together / apart:.2f}"),
    ]
    report(f"Memory of {CLIENTS} clients with the example servers", ("how", "RSS", "ratio"), rows)


if __name__ == "__main__":
    main()
