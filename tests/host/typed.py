"""How authors use the library beside the vendors' packages: checked for types, and never run."""

from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from openai import OpenAI

from aggregator.host import AsyncToolbox, Toolbox

HISTORY: list[dict[str, Any]] = [{"role": "user", "content": "Which notes are about taxes?"}]
CLAUDE, GPT = "claude-opus-5", "gpt-5.4"


def count(tools: list[Any]) -> int:
    return Anthropic().messages.count_tokens(model=CLAUDE, messages=[], tools=tools).input_tokens


def over_messages() -> None:
    client = Anthropic()
    with Toolbox("servers.yaml") as box:
        talk = box.anthropic(CLAUDE, defer="auto", count=count)
        request = talk.request(HISTORY)
        HISTORY.extend(
            talk.answer(client.beta.messages.create(model=CLAUDE, max_tokens=1, **request))
        )
        HISTORY.extend(talk.answer(client.messages.create(model=CLAUDE, max_tokens=1, **request)))


def over_responses() -> None:
    with Toolbox(url="http://127.0.0.1:8765/mcp") as box:
        talk = box.fork().openai(GPT)
        request = talk.request(HISTORY, snapshot=talk.snapshot(HISTORY))
        HISTORY.extend(talk.answer(OpenAI().responses.create(model=GPT, **request)))


async def awaited() -> None:
    async with AsyncToolbox("servers.yaml") as box:
        talk = box.anthropic(CLAUDE, carry="inline")
        request = await talk.request(HISTORY)
        response = await AsyncAnthropic().beta.messages.create(
            model=CLAUDE, max_tokens=1, **request
        )
        HISTORY.extend(await talk.answer(response, {"mine": str}))
