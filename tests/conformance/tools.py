"""What the fixture's tools do."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from tests.conformance.exchange import Exchange, InputNeededError, needed
from tests.conformance.offers import AUDIO, Json, embedded, form, image, text

Tool = Callable[[Exchange], Awaitable[Json]]

NAME = form("What is your name?", name={"type": "string"})
STEP = 0.05
"""Seconds between two things that a tool says."""


async def call_tool(name: str, exchange: Exchange) -> Json:
    """Do what a tool does."""
    if name in CONTENTS:
        return {"content": CONTENTS[name]}
    if name not in BEHAVIOURS:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {name}")
    return await BEHAVIOURS[name](exchange)


def said(words: str) -> Json:
    return {"content": [text(words)]}


def sample(words: str, tokens: int) -> Json:
    return {"messages": [{"role": "user", "content": text(words)}], "maxTokens": tokens}


def filled_in(answer: Json) -> Json:
    """Return what a person has filled in, if they have."""
    content: Json | None = answer.get("content")
    return content or {}


async def log(exchange: Exchange) -> Json:
    await exchange.log("Tool execution started")
    await anyio.sleep(STEP)
    await exchange.log("Tool processing data")
    await anyio.sleep(STEP)
    await exchange.log("Tool execution completed")
    return said("Logged")


async def progress(exchange: Exchange) -> Json:
    for step in (0, 50, 100):
        await exchange.session.report_progress(step, 100, f"{step} of 100")
        await anyio.sleep(STEP)
    return said("Done")


async def fail(_exchange: Exchange) -> Json:
    return {**said("This tool intentionally returns an error for testing"), "isError": True}


async def ask_model(exchange: Exchange) -> Json:
    question = sample(exchange.arguments.get("prompt", "Hello"), 100)
    answer = await exchange.ask("model", "sampling/createMessage", question)
    return said(f"LLM response: {answer['content'].get('text')}")


async def ask_user(exchange: Exchange) -> Json:
    question = form(
        exchange.arguments.get("message", "Who are you?"),
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    answer = await exchange.ask("user", "elicitation/create", question)
    return said(f"User response: {answer}")


async def ask_with_defaults(exchange: Exchange) -> Json:
    question = form(
        "Please check what we know of you",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        verified={"type": "boolean", "default": True},
    )
    answer = await exchange.ask("user", "elicitation/create", question)
    return said(f"Elicitation completed: {answer}")


async def ask_with_choices(exchange: Exchange) -> Json:
    titled = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
    plain = ["option1", "option2", "option3"]
    question = form(
        "Please choose",
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    answer = await exchange.ask("user", "elicitation/create", question)
    return said(f"Elicitation completed: {answer}")


async def need_sampling(exchange: Exchange) -> Json:
    if not exchange.can("sampling"):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "The client must be able to sample",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return said("The client can sample")


async def log_once(exchange: Exchange) -> Json:
    await exchange.log("One message")
    return said("Logged once")


async def greet(exchange: Exchange) -> Json:
    return said(f"Hello, {exchange.arguments.get('name')}!")


async def round_name(exchange: Exchange) -> Json:
    answer = await exchange.ask("user_name", "elicitation/create", NAME)
    return said(f"Hello, {filled_in(answer).get('name', 'stranger')}!")


async def round_model(exchange: Exchange) -> Json:
    question = sample("What is the capital of France?", 100)
    answer = await exchange.ask("capital_question", "sampling/createMessage", question)
    return said(f"The model said {answer.get('content')}")


async def round_roots(exchange: Exchange) -> Json:
    answer = await exchange.ask("client_roots", "roots/list", {})
    return said(f"The client has the roots {answer.get('roots')}")


async def round_state(exchange: Exchange) -> Json:
    question = form("Please confirm", ok={"type": "boolean"})
    questions = {"confirm": {"method": "elicitation/create", "params": question}}
    state = exchange.state()
    await exchange.ask_all(questions, "nonce")
    return said("state-ok" if state == "nonce" or not exchange.is_modern else "state-lost")


async def round_several(exchange: Exchange) -> Json:
    exchange.state()
    await exchange.ask_all(
        {
            "user_name": {"method": "elicitation/create", "params": NAME},
            "greeting": {
                "method": "sampling/createMessage",
                "params": sample("Generate a greeting", 50),
            },
            "client_roots": {"method": "roots/list", "params": {}},
        },
        "several",
    )
    return said("Everything was answered")


async def round_twice(exchange: Exchange) -> Json:
    state: Any = exchange.state() or {"step": 1}
    if state["step"] == 1:
        first = form("Step 1: What is your name?", name={"type": "string"})
        questions = {"step1": {"method": "elicitation/create", "params": first}}
        answers = await exchange.ask_all(questions, {"step": 1})
        name = filled_in(answers["step1"]).get("name")
    else:
        name = state["name"]
    second = form("Step 2: What is your favorite color?", color={"type": "string"})
    questions = {"step2": {"method": "elicitation/create", "params": second}}
    answers = await exchange.ask_all(questions, {"step": 2, "name": name})
    return said(f"{name} likes {filled_in(answers['step2']).get('color')}")


async def round_able(exchange: Exchange) -> Json:
    questions: dict[str, Json] = {}
    if exchange.can("sampling"):
        params = sample("Say hello", 50)
        questions["sample"] = {"method": "sampling/createMessage", "params": params}
    if exchange.can("elicitation"):
        questions["ask"] = {"method": "elicitation/create", "params": NAME}
    if exchange.is_modern and not exchange.params.get("inputResponses"):
        raise InputNeededError(needed(questions, "able"))
    return said("Asked what can be asked")


CONTENTS: dict[str, list[Json]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [{"type": "audio", "data": AUDIO, "mimeType": "audio/wav"}],
    "test_embedded_resource": [embedded("test://embedded-resource", "An embedded resource.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", '{"test": "data"}', "application/json"),
    ],
    "json_schema_2020_12_tool": [text("It has a schema.")],
    "test_mirrored_argument": [text("It came in both places.")],
}

BEHAVIOURS: dict[str, Tool] = {
    "test_tool_with_logging": log,
    "test_tool_with_progress": progress,
    "test_error_handling": fail,
    "test_sampling": ask_model,
    "test_elicitation": ask_user,
    "test_elicitation_sep1034_defaults": ask_with_defaults,
    "test_elicitation_sep1330_enums": ask_with_choices,
    "test_missing_capability": need_sampling,
    "test_logging_tool": log_once,
    "greet": greet,
    "test_streaming_elicitation": round_name,
    "test_input_required_result_elicitation": round_name,
    "test_input_required_result_sampling": round_model,
    "test_input_required_result_list_roots": round_roots,
    "test_input_required_result_request_state": round_state,
    "test_input_required_result_multiple_inputs": round_several,
    "test_input_required_result_multi_round": round_twice,
    "test_input_required_result_tampered_state": round_state,
    "test_input_required_result_capabilities": round_able,
}
