"""`/metrics`: what Prometheus reads, behind the token, with labels that stay few."""

import gc
import weakref
from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from aggregator.basics.eras import Era
from aggregator.catalog import Catalog, Failed, Pending, Ready, ToolEntry
from aggregator.exposure import approximate_tokens
from aggregator.names import ServerName, ToolName
from aggregator.records.events import CallBegan, CallEnded, ListServed, Origin, StateChanged
from aggregator.records.metrics import BUCKETS, MAX_LISTS, MAX_TOOLS, Metrics
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.peers import Peer, connect_to, ready

pytestmark = pytest.mark.anyio

CANARY = "canary-4711"
NOTES = ServerName("notes")
ODD = ServerName('odd "server"\\\n')
SOMEBODY = Origin(CANARY, CANARY)

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def anyio_backend() -> str:
    """The only one that uvicorn runs on."""
    return "asyncio"


def parsed(text: str) -> Samples:
    """Return each sample by its name and labels, as Prometheus' own parser reads them."""
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"aggregator_{name}", frozenset(labels.items())]


async def get(site: Open, headers: Mapping[str, str]) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as http:
        return await http.get(f"{site.origin}/metrics", headers=headers)


async def test_what_happened_is_told_to_who_knows_the_token(
    client_era: Era, tmp_path: Path
) -> None:
    servers = {"notes": connect_to(Peer("add_note"))}
    async with door(servers, tmp_path) as site:
        await ready(site.upstream)
        async with site.client(client_era) as client:
            await client.call_tool("notes__add_note", {"text": CANARY})
            await client.call_tool("CallTool", {"name": CANARY})
            await client.call_tool("ToolSearch", {"query": "add a note"})
            await client.call_tool("ToolSearch", {"query": f"zzzzqqqq {CANARY}"})
            answer = await get(site, site.credentials)
        refused = await get(site, {})

    assert refused.status_code == 401
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = parsed(answer.text)
    ok = {"server": "notes", "tool": "notes__add_note", "outcome": "ok"}
    assert value(samples, "calls_total", **ok) == 1
    assert value(samples, "calls_total", server="", tool="", outcome="unknown-tool") == 1
    assert value(samples, "call_duration_seconds_count", server="notes") == 1
    assert value(samples, "searches_total", result="found") == 1
    assert value(samples, "searches_total", result="nothing") == 1
    assert value(samples, "servers", state="ready") == 1
    assert value(samples, "server_up", server="notes") == 1
    assert value(samples, "calls_in_flight") == 0
    assert value(samples, "sessions") == (1 if client_era == "handshake" else 0)
    assert CANARY not in answer.text


def ended(server: str, tool: str, seconds: float = 0.1, number: int = 1) -> CallEnded:
    return CallEnded(0.0, SOMEBODY, number, server, tool, "", "ok", seconds)


def test_durations_are_counted_up_to_each_bound() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.005, 0.3, 400.0):
        metrics.hear(ended("notes", "notes__add", seconds))

    samples = parsed(metrics.text(Catalog(), 0))

    below = {str(bound): 2 if bound < 0.5 else 3 for bound in BUCKETS} | {"+Inf": 4}
    for bound, number in below.items():
        found = value(samples, "call_duration_seconds_bucket", server="notes", le=bound)
        assert found == number
    assert value(samples, "call_duration_seconds_sum", server="notes") == pytest.approx(400.306)


def test_lists_that_nobody_looks_at_do_not_keep_what_there_was() -> None:
    metrics, held = Metrics(), list[weakref.ref[Catalog]]()
    tool = ToolEntry(ToolName("notes__add"), NOTES, {"name": "add", "inputSchema": {}})
    for _ in range(3 * MAX_LISTS):
        catalog = Catalog({NOTES: Ready((tool,))})
        held.append(weakref.ref(catalog))
        metrics.hear(ListServed(0.0, SOMEBODY, [], catalog))
        del catalog
    gc.collect()
    kept = sum(each() is not None for each in held)
    metrics.weigh()

    samples = parsed(metrics.text(Catalog(), 0))

    assert kept <= MAX_LISTS
    saved = 3 * MAX_LISTS * approximate_tokens(tool)
    assert value(samples, "list_tokens_saved") == saved


def test_lists_are_weighed_by_what_is_known_while_a_server_is_missing() -> None:
    metrics = Metrics()
    tool = ToolEntry(ToolName("notes__add"), NOTES, {"name": "add", "inputSchema": {}})
    hung = ServerName("hung")
    # Before anything is known, a list can be held against nothing.
    metrics.hear(ListServed(0.0, SOMEBODY, [{"name": "ToolSearch"}], Catalog({hung: Pending()})))
    partly = Catalog({NOTES: Ready((tool,)), hung: Pending()})
    metrics.hear(ListServed(0.0, SOMEBODY, [], partly))
    metrics.weigh()

    samples = parsed(metrics.text(Catalog(), 0))

    assert value(samples, "list_tokens_saved") == approximate_tokens(tool)


def test_labels_stay_few_and_odd_names_are_escaped() -> None:
    metrics = Metrics()
    for number in range(2 * MAX_TOOLS):
        metrics.hear(ended(ODD, f"tool {number}"))

    samples = parsed(metrics.text(Catalog({ODD: Failed("gone")}), 0))

    calls = {labels for name, labels in samples if name == "aggregator_calls_total"}
    assert len(calls) == MAX_TOOLS + 1
    assert value(samples, "calls_total", server=ODD, tool="other", outcome="ok") == MAX_TOOLS
    assert value(samples, "servers", state="failed") == 1


def test_calls_of_a_server_that_is_not_there_have_its_label_and_no_tools() -> None:
    metrics = Metrics()
    for number in range(3):
        metrics.hear(ended("", f"{CANARY} {number}")._replace(meant="notes"))

    samples = parsed(metrics.text(Catalog(), 0))

    assert value(samples, "calls_total", server="notes", tool="", outcome="ok") == 3


def test_calls_under_way_and_servers_that_come_back_are_counted() -> None:
    metrics, notes = Metrics(), ServerName("notes")
    for number in (1, 2):
        metrics.hear(CallBegan(0.0, SOMEBODY, number, notes, "notes__add"))
    metrics.hear(ended("notes", "notes__add", number=1))
    for before in (Pending(), Pending(phase="retrying")):
        metrics.hear(StateChanged(0.0, notes, before, Ready()))

    samples = parsed(metrics.text(Catalog(), 3))

    assert value(samples, "calls_in_flight") == 1
    assert value(samples, "server_restarts_total", server="notes") == 1
    assert value(samples, "sessions") == 3
