"""The event loops that serve over HTTP: asyncio's own and, where it is installed, uvloop."""

from importlib.util import find_spec

import pytest

LOOPS = [
    pytest.param(("asyncio", {"use_uvloop": name == "uvloop"}), id=name)
    for name in ("asyncio", "uvloop")
    if find_spec(name) is not None
]
