"""Model APIs that behave as their vendors' do: what they refuse, what their models see.

A model here is a script; it can use only the tools that the API shows it at that moment.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from anthropic.types import MessageParam, ToolUnionParam
from anthropic.types.beta import BetaMessageParam, BetaToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam

from tests.host.shapes import problems

Json = dict[str, Any]

BETAS = {"mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"}
PREAMBLE = 500
CHARACTERS_PER_TOKEN = 4


class RefusedError(Exception):
    """The API answers with a status of 400."""


def refuse_unless(condition: object, why: str) -> None:
    if not condition:
        raise RefusedError(why)


def text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


class Api:
    """What both APIs do."""

    def __init__(self, *, is_gateway: bool = False) -> None:
        self.is_gateway = is_gateway
        """Whether it knows only what every API of its kind has always known."""
        self.prompts: list[str] = []
        """What the model saw of each request, in the order in which it is cached."""
        self.issued = 0

    def tokens(self, prompt: str) -> int:
        return PREAMBLE + len(prompt) // CHARACTERS_PER_TOKEN

    @property
    def kept(self) -> list[int]:
        """How much of the request before each one begins with, in characters."""
        pairs = zip(self.prompts, self.prompts[1:], strict=False)
        return [_common(before, after) for before, after in pairs]

    def keeps_its_beginning(self, start: int = 0) -> bool:
        """Whether each request begins with the whole of the one before."""
        pairs = zip(self.prompts[start:], self.prompts[start + 1 :], strict=False)
        return all(after.startswith(before) for before, after in pairs)

    def next_id(self) -> str:
        self.issued += 1
        return f"call_{self.issued}"

    def check_schema(self, schema: Json) -> None:
        refuse_unless(schema.get("type") == "object", "input_schema.type: must be object")
        choices = {"oneOf", "anyOf", "allOf"} & schema.keys()
        refuse_unless(
            not choices, "input_schema does not support oneOf, allOf, or anyOf at the top"
        )


class MessagesApi(Api):
    """The Anthropic Messages API."""

    def create(self, script: Sequence[Json], **body: Any) -> Json:
        """Answer with blocks of a script; a `use` names a tool and its arguments."""
        visible = self.accept(**body)
        content = [self._block(block, visible, body) for block in script]
        reason = "tool_use" if any(b["type"] == "tool_use" for b in content) else "end_turn"
        usage = {"input_tokens": self.tokens(self.prompts[-1]), "output_tokens": 1}
        return {
            "id": "msg",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }

    def count_tokens(self, tools: list[Json]) -> int:
        return PREAMBLE + len(text(tools)) // CHARACTERS_PER_TOKEN

    def accept(
        self,
        *,
        model: str,
        messages: list[Json],
        tools: list[Json],
        extra_headers: dict[str, str] | None = None,
        **_rest: Any,
    ) -> dict[str, Json]:
        """Take a request or refuse it, and return the tools that the model then sees."""
        betas = set((extra_headers or {}).get("anthropic-beta", "").split(",")) - {""}
        refuse_unless(betas <= BETAS, "unknown beta")
        # Who has the API compact asks for the beta of it.
        is_beta = bool(betas) or _start(messages) > 0
        self._check_shapes(tools, messages, is_beta=is_beta)
        refuse_unless(not tools or any(not t.get("defer_loading") for t in tools), "all deferred")
        for tool in tools:
            refuse_unless(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]), "tools.name")
            self.check_schema(tool["input_schema"])
        known = {tool["name"]: _definition(tool) for tool in tools}
        refuse_unless(len(known) == len(tools), "tools: names must be unique")
        deferred = {tool["name"] for tool in tools if tool.get("defer_loading")}
        can_refer = "haiku" not in model and not self.is_gateway
        refuse_unless(can_refer or not deferred, "defer_loading: not supported")
        seen = {name: each for name, each in known.items() if name not in deferred}
        prompt = [text(list(seen.values()))]
        self._check_turns(messages)
        for message in messages[_start(messages) :]:
            for block in _blocks(message):
                prompt.append(message["role"] + text(block))
                for name in _references(block):
                    refuse_unless(can_refer, "tool_reference: not supported")
                    refuse_unless(name in known, f"tool_reference_unresolved: {name}")
                    seen[name] = known[name]
                    prompt.append(text(known[name]))
                self._change(block, seen, known)
        self.prompts.append("\n".join(prompt))
        return seen

    def _change(self, block: Json, seen: dict[str, Json], known: dict[str, Json]) -> None:
        changes = block.get("tool_changes") or [block]
        for change in changes:
            if change["type"] not in ("tool_addition", "tool_removal"):
                continue
            tool = change["tool"]
            if tool["type"] == "tool_definition":
                name = tool["definition"]["name"]
                refuse_unless(name not in seen, f"{name} is there already")
                self.check_schema(tool["definition"]["input_schema"])
                known[name] = tool["definition"]
            name = tool["definition"]["name"] if "definition" in tool else tool["name"]
            refuse_unless(name in known, f"tool_reference_unresolved: {name}")
            if change["type"] == "tool_addition":
                seen[name] = known[name]
            else:
                refuse_unless(name in seen, f"{name} is not there")
                del seen[name]

    def _check_shapes(self, tools: list[Json], messages: list[Json], *, is_beta: bool) -> None:
        tool_type = BetaToolUnionParam if is_beta else ToolUnionParam
        message_type = BetaMessageParam if is_beta else MessageParam
        wrong = [line for tool in tools for line in problems(tool, tool_type, "tools")]
        wrong += [line for each in messages for line in _told(each, message_type)]
        refuse_unless(not wrong, f"{wrong}")

    def _check_turns(self, messages: list[Json]) -> None:
        refuse_unless(messages and messages[0]["role"] == "user", "first message must be user")
        asked: list[str] = []
        for before, message in zip([{"role": ""}, *messages], messages, strict=False):
            blocks = _blocks(message)
            results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
            refuse_unless(blocks, "content must not be empty")
            if message["role"] == "system":
                refuse_unless(before["role"] == "user", "system must follow user")
                continue
            refuse_unless(sorted(results) == sorted(asked), f"tool_result for {asked}: {results}")
            asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        refuse_unless(not asked, "tool_use without tool_result")
        refuse_unless(messages[-1]["role"] != "assistant", "last message is the model's")

    def _block(self, block: Json, visible: dict[str, Json], body: Json) -> Json:
        if block["type"] == "use":
            assert block["name"] in visible, f"{block['name']} is not among {sorted(visible)}"
            call = {"id": self.next_id(), "name": block["name"], "input": block["input"]}
            return {"type": "tool_use", **call}
        if block["type"] == "compaction":
            fixed = {tool["name"] for tool in body["tools"] if not tool.get("defer_loading")}
            staged = {tool["name"] for tool in body["tools"]}
            changes = [_addition(each, staged) for n, each in visible.items() if n not in fixed]
            return {**block, "signature": "signed", "tool_changes": changes}
        return block


class ResponsesApi(Api):
    """The OpenAI Responses API."""

    def create(self, script: Sequence[Json], **body: Any) -> Json:
        """Answer with items of a script; a `use` names a tool, a `search` a query."""
        visible = self.accept(**body)
        output = [self._item(item, visible) for item in script]
        return {"id": "resp", "object": "response", "output": output}

    def accept(
        self,
        *,
        model: str,
        tools: list[Json],
        **body: Any,
    ) -> set[tuple[str, str]]:
        """Take a request or refuse it, and return the tools that the model then sees."""
        said: list[Json] = body["input"]
        wrong = [line for tool in tools for line in problems(tool, ToolParam, "tools")]
        wrong += [line for each in said for line in _told(each, ResponseInputItemParam)]
        refuse_unless(not wrong, f"{wrong}")
        can_search = "gpt-5.4" in model and "nano" not in model and not self.is_gateway
        seen = self._define(tools)
        asked: dict[str, str] = {}
        for item in said:
            kind = item.get("type", "message")
            native = kind in ("tool_search_call", "tool_search_output")
            refuse_unless(can_search or not native, f"{kind}: not supported")
            refuse_unless(can_search or "namespace" not in item, "namespace: not supported")
            if kind in ("function_call", "tool_search_call"):
                asked[item["call_id"]] = kind
            if kind in ("function_call_output", "tool_search_output"):
                expected = kind.replace("_output", "_call").replace("call_call", "call")
                refuse_unless(asked.pop(item["call_id"], "") == expected, f"no call for {item}")
                seen |= self._define(item.get("tools", []))
        refuse_unless(not asked, f"calls without outputs: {asked}")
        native_search = any(tool["type"] == "tool_search" for tool in tools)
        refuse_unless(can_search or not native_search, "tool_search: not supported")
        self.prompts.append("\n".join([text(tools), *map(text, said)]))
        return seen

    def _define(self, tools: list[Json], space: str = "") -> set[tuple[str, str]]:
        seen: set[tuple[str, str]] = set()
        for tool in tools:
            if tool["type"] == "namespace":
                seen |= self._define(tool["tools"], tool["name"])
            elif tool["type"] == "function":
                refuse_unless(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]), "name")
                refuse_unless((space, tool["name"]) not in seen, "names must be unique")
                self.check_schema(tool["parameters"])
                seen.add((space, tool["name"]))
            else:
                seen.add(("", tool["type"]))
        return seen

    def _item(self, item: Json, visible: set[tuple[str, str]]) -> Json:
        if item["type"] == "use":
            space, name = item.get("namespace", ""), item["name"]
            assert (space, name) in visible, f"{name} is not among {sorted(visible)}"
            within = {"namespace": space} if space else {}
            call = {"call_id": self.next_id(), "name": name, "arguments": text(item["input"])}
            return {"type": "function_call", **call, **within}
        if item["type"] == "search":
            assert ("", "tool_search") in visible
            return {
                "type": "tool_search_call",
                "id": "ts",
                "call_id": self.next_id(),
                "execution": "client",
                "status": "completed",
                "arguments": {"query": item["query"], **item.get("more", {})},
            }
        return item


def use(name: str, **arguments: Any) -> Json:
    """Have a model use a tool."""
    return {"type": "use", "name": name, "input": arguments}


def say(words: str) -> Json:
    """Have a model of Anthropic's say something."""
    return {"type": "text", "text": words}


def _told(value: Json, kind: Any) -> list[str]:
    return problems(value, kind, value.get("role") or value.get("type") or "")


def _definition(tool: Json) -> Json:
    return {key: value for key, value in tool.items() if key != "defer_loading"}


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _references(block: Json) -> list[str]:
    inside: list[Json] = block.get("content") or [] if block["type"] == "tool_result" else []
    return [b["tool_name"] for b in inside if b["type"] == "tool_reference"]


def _start(messages: list[Json]) -> int:
    places = (
        n for n, m in enumerate(messages) if any(b["type"] == "compaction" for b in _blocks(m))
    )
    return max(places, default=0)


def _addition(definition: Json, staged: set[str]) -> Json:
    tool: Json = {"type": "tool_definition", "definition": definition}
    if definition["name"] in staged:
        tool = {"type": "tool_reference", "name": definition["name"]}
    return {"type": "tool_addition", "tool": tool}


def _common(one: str, other: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
