"""What is said to whoever stops us."""

import signal

import pytest

from aggregator.basics.shutdown_notice import ShutdownNotice


@pytest.mark.parametrize(
    ("told", "step"),
    [
        (None, ""),
        (signal.SIGINT, "; Ctrl-C again ends them at once"),
        (signal.SIGTERM, "; SIGTERM again ends them at once"),
    ],
)
def test_what_ends_a_wait_at_once_is_what_was_done_before(
    told: signal.Signals | None, step: str
) -> None:
    said: list[str] = []
    shutdown_notice = ShutdownNotice(said.append)
    if told is not None:
        shutdown_notice.told_by(told)

    shutdown_notice.wait_for_calls(2, 20.0)
    shutdown_notice.wait_for_servers(["a", "b", "c", "d"])

    assert said == [
        f"waiting up to 20 s for 2 calls{step}",
        f"waiting for `a`, `b`, `c` and 1 more{step}",
    ]
