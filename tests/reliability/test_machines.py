"""Any course of events: attempts that fail, servers that die, calls that are cancelled."""

from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import anyio
import anyio.abc
import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from trio.testing import MockClock

from aggregator.catalog import Ready
from aggregator.downstream.outage import REST
from aggregator.downstream.transport import Transport
from aggregator.names import ServerName
from tests.peers import Context, Mortal, Peer, aggregating, connect_to, error_of, text_of, visiting

DB = ServerName("db")

CONNECT_TIMEOUT = 20.0
CALL_TIMEOUT = 10.0
OPTIONS = {"connect_timeout": CONNECT_TIMEOUT, "call_timeout": CALL_TIMEOUT}

NARROW = {"max_in_flight": 2, "max_queued": 2}

SLACK = 0.5
"""Seconds that an answer may come after its time has run out."""

Outcome = Literal["ready", "refused", "hangs", "missing", "odd"]


def on_a_virtual_clock(story: Callable[..., Awaitable[None]], *arguments: object) -> None:
    clock = MockClock(autojump_threshold=0)
    anyio.run(story, *arguments, backend="trio", backend_options={"clock": clock})


class Holder(Peer):
    """Holds each call until it is released, and counts how often each was run."""

    def __init__(self) -> None:
        super().__init__("hold", "echo")
        self.ran = Counter[str]()
        self._released: dict[str, anyio.Event] = {}

    def release(self, nonce: str) -> None:
        self._released.setdefault(nonce, anyio.Event()).set()

    async def _call(
        self,
        ctx: Context,  # noqa: ARG002 - the shape of a handler
        params: types.CallToolRequestParams,
    ) -> types.CallToolResult:
        nonce = str((params.arguments or {}).get("nonce"))
        self.ran[nonce] += 1
        if params.name == "hold":
            await self._released.setdefault(nonce, anyio.Event()).wait()
        return types.CallToolResult(content=[types.TextContent(type="text", text=nonce)])


# Attempts


class Fickle:
    """A way to a server whose attempts come out as planned, and well after that."""

    def __init__(self, plan: Sequence[Outcome]) -> None:
        self._plan = deque(plan)
        self._way = Mortal(connect_to(Holder()))
        self.attempts: list[tuple[float, Outcome]] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncGenerator[Transport, None]:
        outcome: Outcome = self._plan.popleft() if self._plan else "ready"
        self.attempts.append((anyio.current_time(), outcome))
        if outcome == "refused":
            raise ConnectionRefusedError("connection refused")
        if outcome == "missing":
            raise FileNotFoundError("there is no such command")
        if outcome == "odd":
            raise KeyError("nobody thought of this")
        if outcome == "hangs":
            await anyio.sleep_forever()
        async with self._way() as transport:
            yield transport

    def cut(self) -> None:
        self._way.cut()


@pytest.mark.no_cover
@given(
    plan=st.lists(st.sampled_from(["ready", "refused", "hangs", "missing", "odd"]), max_size=12),
    events=st.lists(st.one_of(st.just("cut"), st.just("call"), st.floats(0.01, 100)), max_size=15),
)
@settings(max_examples=60, deadline=None)
def test_a_server_is_never_given_up_silently_nor_hammered(
    plan: list[Outcome], events: list[str | float]
) -> None:
    on_a_virtual_clock(_supervised, plan, events)


async def _supervised(plan: list[Outcome], events: list[str | float]) -> None:
    fickle = Fickle(plan)
    async with aggregating({"db": fickle}, db=OPTIONS) as upstream:
        async with visiting(upstream, "handshake") as client:
            for event in events:
                await _happen(event, fickle, client)
            # Somebody who keeps asking gets it in the end, whatever went wrong before.
            for _ in range(len(plan) + 1):
                await _called_in_time(client)
                await anyio.sleep(120)
            state = upstream.fleet.now.catalog.servers[DB]

    assert isinstance(state, Ready), state
    for (before, outcome), (after, _) in pairwise(fickle.attempts):
        assert outcome in ("ready", "missing") or after - before >= REST / 2
    busiest = max(
        sum(1 for when, _ in fickle.attempts if start <= when < start + 60)
        for start, _ in fickle.attempts
    )
    assert busiest <= 60 / REST


async def _happen(event: str | float, fickle: Fickle, client: Client) -> None:
    match event:
        case "cut":
            fickle.cut()
            await anyio.sleep(0.01)
        case "call":
            await _called_in_time(client)
        case seconds:
            await anyio.sleep(float(seconds))


async def _called_in_time(client: Client) -> None:
    """Call; whatever the server does, there is an answer in time."""
    began = anyio.current_time()
    answer = await client.call_tool("CallTool", {"name": "db__echo", "arguments": {"nonce": "x"}})
    assert anyio.current_time() - began <= CONNECT_TIMEOUT + CALL_TIMEOUT + SLACK
    assert text_of(answer) == "x" or answer.is_error


# Calls


@dataclass(slots=True)
class Calls:
    """Calls under way, and what became of each."""

    client: Client
    scopes: dict[str, anyio.CancelScope] = field(default_factory=dict[str, anyio.CancelScope])
    outcomes: dict[str, list[types.CallToolResult]] = field(
        default_factory=dict[str, list[types.CallToolResult]]
    )
    cancelled: set[str] = field(default_factory=set[str])

    def begin(self, group: anyio.abc.TaskGroup) -> None:
        nonce = f"call {len(self.scopes)}"
        self.scopes[nonce] = anyio.CancelScope()
        self.outcomes[nonce] = []
        group.start_soon(self._run, nonce)

    def cancel(self, number: int) -> None:
        if nonce := self._chosen(number):
            self.cancelled.add(nonce)
            self.scopes[nonce].cancel()

    def release(self, number: int, holder: Holder) -> None:
        if nonce := self._chosen(number):
            holder.release(nonce)

    def _chosen(self, number: int) -> str | None:
        return list(self.scopes)[number % len(self.scopes)] if self.scopes else None

    async def _run(self, nonce: str) -> None:
        with self.scopes[nonce]:
            answer = await self.client.call_tool("db__hold", {"nonce": nonce})
            self.outcomes[nonce].append(answer)


STEPS: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.tuples(st.just("begin"), st.none()),
    st.tuples(st.just("cancel"), st.integers(0, 20)),
    st.tuples(st.just("release"), st.integers(0, 20)),
    st.tuples(st.just("cut"), st.none()),
    st.tuples(st.just("wait"), st.floats(0, 3)),
)


@pytest.mark.no_cover
@given(steps=st.lists(STEPS, max_size=25))
@settings(max_examples=60, deadline=None)
def test_each_call_has_one_outcome_and_none_is_run_twice(steps: list[tuple[str, Any]]) -> None:
    on_a_virtual_clock(_played, steps)


async def _played(steps: list[tuple[str, Any]]) -> None:
    holder = Holder()
    mortal = Mortal(connect_to(holder))
    async with aggregating({"db": mortal}, db={**OPTIONS, **NARROW}) as upstream:
        async with visiting(upstream, "handshake") as client:
            calls = Calls(client)
            async with anyio.create_task_group() as group:
                for step, detail in steps:
                    if step == "begin":
                        calls.begin(group)
                    await _step(step, detail, calls, holder, mortal)
            await anyio.sleep(120)
            again = await client.call_tool("db__echo", {"nonce": "again"})
            assert text_of(again) == "again"
            _check(calls, holder)


def _check(calls: Calls, holder: Holder) -> None:
    for nonce, outcomes in calls.outcomes.items():
        assert holder.ran[nonce] <= 1
        assert len(outcomes) == 1 or (nonce in calls.cancelled and not outcomes)
        assert all(_is_right(nonce, answer) for answer in outcomes)


async def _step(step: str, detail: Any, calls: Calls, holder: Holder, mortal: Mortal) -> None:
    match step:
        case "cancel":
            calls.cancel(detail)
        case "release":
            calls.release(detail, holder)
        case "cut":
            mortal.cut()
        case "wait":
            await anyio.sleep(detail)
        case _:
            pass
    await anyio.sleep(0.001)


def _is_right(nonce: str, answer: types.CallToolResult) -> bool:
    kinds = {"server-lost", "timeout", "server-unavailable", "busy"}
    return text_of(answer) == nonce or error_of(answer).get("kind") in kinds


@given(callers=st.integers(5, 20))
@settings(max_examples=10, deadline=None)
def test_who_comes_to_a_full_queue_is_told_at_once(callers: int) -> None:
    on_a_virtual_clock(_crowded, callers)


async def _crowded(callers: int) -> None:
    holder = Holder()
    async with aggregating({"db": connect_to(holder)}, db={**OPTIONS, **NARROW}) as upstream:
        async with visiting(upstream, "handshake") as client:
            await _called_in_time(client)
            calls = Calls(client)
            async with anyio.create_task_group() as group:
                for _ in range(callers):
                    calls.begin(group)
                await anyio.sleep(0.1)
                told = [answer for answers in calls.outcomes.values() for answer in answers]
                assert len(told) == callers - sum(NARROW.values())
                assert all(error_of(answer).get("kind") == "busy" for answer in told)
                for number in range(callers):
                    calls.release(number, holder)
