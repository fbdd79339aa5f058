"""The page for authors shows what runs."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.host.test_example import FILE
from tests.host.vendors import MessagesApi, say, use

PAGE = Path(__file__).parent.parent.parent / "docs/host.md"
pytestmark = pytest.mark.slow


def test_the_first_agent_has_ten_lines_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "servers.yaml").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    api = MessagesApi()
    turns = iter(
        [
            use("ToolSearch", query="select:text__count_words", wait=30),
            use("text__count_words", text="one two"),
            say("Two."),
        ]
    )

    class Vendor:
        """The package of the vendor, as far as the page uses it."""

        def __init__(self) -> None:
            self.beta = SimpleNamespace(messages=SimpleNamespace(create=self.create))

        def create(self, **body: Any) -> dict[str, Any]:
            return api.create([next(turns)], **body)

    module = ModuleType("anthropic")
    module.__dict__["Anthropic"] = Vendor
    monkeypatch.setitem(sys.modules, "anthropic", module)
    exec(compile(program, str(PAGE), "exec"), {})  # noqa: S102 - it is our own page

    assert len([line for line in program.splitlines() if line]) <= 10
    assert next(turns, None) is None
    assert api.keeps_its_beginning()
