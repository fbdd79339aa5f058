"""The agent in `examples`, a real process with a real aggregator, against APIs on the loopback."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aggregator.host import Toolbox
from tests.host.door import serving
from tests.host.test_responses import SAID, called, search
from tests.host.vendors import MessagesApi, ResponsesApi, say, use

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 120.0
pytestmark = pytest.mark.slow

FILE = f"""\
servers:
  text:
    command: {sys.executable}
    args: [{ROOT}/examples/servers/text.py]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "servers.yaml").write_text(FILE, encoding="utf-8")
    return tmp_path / "servers.yaml"


def run(config: Path, *arguments: str, **variables: str) -> str:
    """Run the agent, and return what it says."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples/agent.py", "count it", "--config", config, *arguments],
        env={**os.environ, "XDG_STATE_HOME": str(config.parent), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("carry", ["reference", "inline", "plain"])
def test_the_agent_works_over_the_messages_api(config: Path, carry: str) -> None:
    api = MessagesApi()
    turns: tuple[Any, ...] = (
        [use("ToolSearch", query="select:text__count_words", wait=30)],
        [use("text__count_words", text="one two")],
        [say("Two words.")],
    )

    with serving(api, *turns) as url:
        said = run(config, "--carry", carry, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="none")

    assert said == "Two words."


def test_the_agent_works_over_the_responses_api(config: Path) -> None:
    api = ResponsesApi()
    turns = (
        [search("select:text__count_words", wait=30)],
        [called("text", "count_words", text="one two")],
        [SAID],
    )

    with serving(api, *turns) as url:
        variables = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        said = run(config, "--model", "gpt-5.4", "--carry", "inline", **variables)

    assert said == "Done."


def test_the_agent_is_short() -> None:
    assert len((ROOT / "examples/agent.py").read_text(encoding="utf-8").splitlines()) < 60


def test_a_box_without_awaiting_runs_functions_where_it_is_called(config: Path) -> None:
    variables = {**os.environ, "XDG_STATE_HOME": str(config.parent)}
    api = MessagesApi()
    mine: dict[str, Any] = {"name": "mine", "input_schema": {"type": "object", "properties": {}}}
    history: list[Any] = [{"role": "user", "content": "count it"}]

    with Toolbox(config, environment=variables) as box:
        talk = box.fork().anthropic("claude-opus-5", defer="auto:1", count=lambda _tools: 9_000)
        for turn in (
            [use("ToolSearch", query="select:text__count_words", wait=30), use("mine")],
            [use("text__count_words", text="one two")],
            [say("Two words.")],
        ):
            request = talk.request(history, [mine])
            response = api.create(turn, model="claude-opus-5", **request)
            history += talk.answer(response, {"mine": lambda _given: {"a": 1}})

    assert talk.snapshot(history) == ["text__count_words"]
    assert history[2]["content"][1]["content"] == [{"type": "text", "text": '{"a": 1}'}]
    assert api.keeps_its_beginning()
    with pytest.raises(RuntimeError, match="with"):
        box.openai("gpt-5.4")
