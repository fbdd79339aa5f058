"""The two backends every test without timing of its own runs on."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from zlib import crc32

import pytest
from hypothesis import settings
from hypothesis.internal.entropy import deterministic_PRNG
from trio.testing import MockClock

from tests.peers import ERAS, Era
from tests.ways import WAYS, coming

# How long an example takes says how busy the machine is, and nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Images for containers have this switched off for what is run once. Here the same modules are
# loaded by hundreds of processes, and to compile them each time is a fifth of what a start takes.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell starts what runs in the background with SIGINT ignored, and every process started from
# there ignores it too; tests that press Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The same with `nohup` and closed terminals.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


# No test looks into, or waits for, the keyring of whoever runs it; one that needs a ring names it.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run two more tests at a time than there are processors: many wait for processes to end."""
    return (os.cpu_count() or 1) + 2


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """Take back what a command does to the process it runs in: here, others run after it."""
    root, ours = logging.getLogger(), logging.getLogger("aggregator")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    gc.set_threshold(*thresholds)
    if gc.get_freeze_count() > frozen:
        gc.unfreeze()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest) -> Iterator[tuple[str, dict[str, object]]]:
    """The backend on which an hour passes at once, for tests that say when things happen."""
    # Trio runs tasks that are ready together in any order, another one each time. Where the
    # examples of a test are the same in each run, this order is too.
    repeatable = settings().derandomize
    with deterministic_PRNG(crc32(request.node.nodeid.encode())) if repeatable else nullcontext():
        yield "trio", {"clock": MockClock(autojump_threshold=0)}


@pytest.fixture(params=ERAS)
def client_era(request: pytest.FixtureRequest) -> Era:
    """Run a test that names it for clients of each era."""
    return request.param


@pytest.fixture(params=ERAS)
def server_era(request: pytest.FixtureRequest) -> Era:
    """Run a test that names it for servers of each era."""
    return request.param


@pytest.fixture(params=WAYS)
def each_way(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Run a test whose clients come in process, and the same where they come through a hub."""
    with coming(request.param, tmp_path_factory.mktemp("way")):
        yield
