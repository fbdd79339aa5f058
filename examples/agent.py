"""A whole agent with tool search, over the Anthropic Messages or the OpenAI Responses API.

ANTHROPIC_API_KEY=... python examples/agent.py "What is on the board?" --model claude-opus-5
"""

import argparse
import json
import os
from typing import Any
from urllib.request import Request, urlopen

from aggregator.host import Toolbox


def post(url: str, headers: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
    """Send a request to a model API and return its answer."""
    sent = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})  # noqa: S310
    with urlopen(sent) as answer:  # noqa: S310 - the vendor's address, or the one that is set
        return json.load(answer)


def ask_anthropic(model: str, request: dict[str, Any]) -> dict[str, Any]:
    """Make one request to the Messages API."""
    url = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
    key = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}
    headers = {**key, **request.pop("extra_headers", {})}
    return post(f"{url}/v1/messages", headers, {"model": model, "max_tokens": 4096, **request})


def ask_openai(model: str, request: dict[str, Any]) -> dict[str, Any]:
    """Make one request to the Responses API."""
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    return post(f"{url}/responses", headers, {"model": model, **request})


def main() -> None:
    """Answer one question."""
    parser = argparse.ArgumentParser()
    parser.add_argument("question")
    parser.add_argument("--model", default="claude-opus-5")
    parser.add_argument("--config", default="servers.yaml")
    parser.add_argument("--carry", choices=("reference", "inline", "plain", "all"))
    options = parser.parse_args()
    ask = ask_openai if options.model.startswith("gpt") else ask_anthropic
    history: list[dict[str, Any]] = [{"role": "user", "content": options.question}]
    with Toolbox(options.config) as box:
        begin = box.openai if ask is ask_openai else box.anthropic
        talk = begin(options.model, carry=options.carry)
        for _step in range(20):
            history += talk.answer(ask(options.model, dict(talk.request(history))))
            if history[-1].get("role") == "assistant":
                break
    print("".join(block.get("text", "") for block in history[-1]["content"]))  # noqa: T201


if __name__ == "__main__":
    main()
