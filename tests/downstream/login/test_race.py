"""Several processes with one login, where a refresh token that is shown twice ends it for all."""

import json
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.shared.auth import OAuthToken

from tests.downstream.login.authority import Authority, Grant, world
from tests.downstream.login.logins import had, logins_in, server_at
from tests.patience import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PROCESSES = 4
LIFETIME = 2
"""Seconds that an access token lives."""
RENEWALS = 6
"""Renewals that all of them live through: one in nine tenths of a life is ten seconds of calls."""
ROOT = Path(__file__).parents[3]


class Counting(Authority):
    """Tells when it has been asked often enough since all were there."""

    def __init__(self) -> None:
        super().__init__(lifetime=LIFETIME)
        self.enough = anyio.Event()
        self._begun = 0
        self._until = sys.maxsize

    def begin(self) -> None:
        """Take note that one more process has called and goes on to."""
        self._begun += 1
        if self._begun == PROCESSES:
            self._until = self.refreshed + RENEWALS

    def grant(self, grant: Grant) -> OAuthToken:
        tokens = super().grant(grant)
        if self.refreshed >= self._until:
            self.enough.set()
        return tokens


async def test_no_call_fails_and_no_token_is_shown_twice(tmp_path: Path) -> None:
    async with world(Counting()) as there:
        authority = there.authority
        assert isinstance(authority, Counting)
        had(authority, logins_in(tmp_path).file(server_at(there.url)), time.time)
        command = [sys.executable, "-m", "tests.downstream.login.worker", there.url, str(tmp_path)]
        results: list[dict[str, object]] = []

        async def work() -> None:
            async with await anyio.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, cwd=ROOT
            ) as process:
                assert process.stdin is not None
                assert process.stdout is not None
                said = BufferedByteReceiveStream(process.stdout)
                assert await said.receive_until(b"\n", 100) == b"begun"
                authority.begin()
                await authority.enough.wait()
                await process.stdin.aclose()
                results.append(json.loads(await said.receive_until(b"\n", 1 << 20)))

        with anyio.fail_after(4 * PATIENCE):
            async with anyio.create_task_group() as group:
                for _ in range(PROCESSES):
                    group.start_soon(work)

        assert [each["bad"] for each in results] == [[]] * PROCESSES
        assert all(each["good"] for each in results)
        assert authority.reused == 0
        assert not any(grant.is_revoked for grant in authority.refresh.values())
