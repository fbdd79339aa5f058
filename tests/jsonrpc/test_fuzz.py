"""A hundred thousand damaged lines: no exception, no hang, nothing held."""

import time
from random import Random

import anyio
import pytest

from aggregator.jsonrpc.decoding import decode
from aggregator.jsonrpc.framing import Framing
from tests.census import Census
from tests.downstream.stdio.running import faulty, running, watched
from tests.faults import DAMAGE
from tests.patience import PATIENCE

LINES = 100_000
LIMIT = 20_000

WHOLE = (
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}',
    b'{"result":{"structuredContent":{"n":[1,2.5e3,null,true]}},"jsonrpc":"2.0","id":"a"}',
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no","data":{}}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}',
    b'[{"jsonrpc":"2.0","id":3,"method":"ping"}]',
)


def damaged(random: Random) -> bytes:
    line = bytearray(random.choice(WHOLE))
    for _ in range(random.randint(0, 3)):
        start = random.randrange(len(line) + 1)
        piece = random.choice((*DAMAGE, random.randbytes(3), random.choice(WHOLE)))
        line[start : start + random.randrange(20)] = piece
    return bytes(line)


@pytest.mark.no_cover
@pytest.mark.slow
def test_no_line_is_too_much_for_the_decoder():
    random = Random(20260728)  # noqa: S311 - the same damage in every run
    framing = Framing(LIMIT)
    slowest = 0.0
    for _ in range(LINES):
        started = time.thread_time()
        for line in framing.feed(damaged(random) + b"\n"):
            assert decode(line, LIMIT)
        slowest = max(slowest, time.thread_time() - started)
    assert slowest < 1
    assert framing.finish() == []


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_server_that_sends_nothing_but_damage_is_still_there_afterwards(census: Census):
    async with watched(census) as watchdog, running(faulty(), watchdog) as server:
        with anyio.fail_after(PATIENCE):
            damage = await server.text("fault", kind="mutations", size=LINES // 8)
            assert damage == "after the damage"
            assert await server.text("echo", text="unharmed") == "unharmed"
        assert len(server.logged) == 5
        assert server.child.noise_count > LINES // 40
