"""What the fixture lists: names, schemas and contents that the suite fixes."""

from typing import Any

from tests.conformance.exchange import Exchange

Json = dict[str, Any]

IMAGE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
AUDIO = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def image() -> Json:
    return {"type": "image", "data": IMAGE, "mimeType": "image/png"}


def embedded(uri: str, words: str, mime_type: str = "text/plain") -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


def form(message: str, **properties: Json) -> Json:
    """Ask for these properties, all of them required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"message": message, "requestedSchema": schema}


def _tool(name: str, description: str, /, **properties: Json) -> Json:
    schema: Json = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = list(properties)
    return {"name": name, "description": description, "inputSchema": schema}


_STRING: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}

_ROUNDS = (
    "elicitation",
    "sampling",
    "list_roots",
    "request_state",
    "multiple_inputs",
    "multi_round",
    "tampered_state",
    "capabilities",
)

TOOLS: list[Json] = [
    _tool("test_simple_text", "Answers with text"),
    _tool("test_image_content", "Answers with an image"),
    _tool("test_audio_content", "Answers with a sound"),
    _tool("test_embedded_resource", "Answers with a resource"),
    _tool("test_multiple_content_types", "Answers with text, an image and a resource"),
    _tool("test_tool_with_logging", "Logs while it works"),
    _tool("test_tool_with_progress", "Tells how far it has come"),
    _tool("test_error_handling", "Fails, and says so"),
    _tool("test_sampling", "Asks the client's model", prompt=_STRING),
    _tool("test_elicitation", "Asks the client's user", message=_STRING),
    _tool("test_elicitation_sep1034_defaults", "Asks with defaults"),
    _tool("test_elicitation_sep1330_enums", "Asks with every kind of choice"),
    _tool(
        "test_mirrored_argument",
        "Wants an argument in a header as well",
        region={**_STRING, "x-mcp-header": "Region"},
    ),
    _tool("test_missing_capability", "Needs a client that can sample"),
    _tool("test_trigger_tool_change", "Adds a tool"),
    _tool("test_trigger_prompt_change", "Adds a prompt"),
    _tool("test_logging_tool", "Logs once"),
    _tool("test_streaming_elicitation", "Asks in the middle of its work"),
    *(
        _tool(f"test_input_required_result_{name}", f"Asks before it answers: {name}")
        for name in _ROUNDS
    ),
    _tool("greet", "Greets at once", name=_STRING),
    _tool("slow_compute", "Takes as long as it is told to", seconds=_NUMBER, label=_STRING),
    _tool("failing_job", "Fails after a while, and says so"),
    _tool("protocol_error_job", "Breaks down"),
    _tool("confirm_delete", "Asks while it works", filename=_STRING),
    _tool("multi_input", "Asks two things while it works"),
    _tool("test_tool_with_task", "Asks before it begins to work"),
    {
        "name": "json_schema_2020_12_tool",
        "description": "Has a schema of the newest kind",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": _STRING, "city": _STRING},
                }
            },
            "properties": {
                "name": _STRING,
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": _STRING,
                "email": _STRING,
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        },
    },
]

RESOURCES: list[Json] = [
    {"uri": "test://static-text", "name": "text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "watched", "mimeType": "text/plain"},
]

TEMPLATES: list[Json] = [
    {"uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json"}
]


def _prompt(name: str, description: str, *arguments: str) -> Json:
    described = [
        {"name": each, "description": f"The {each}", "required": True} for each in arguments
    ]
    prompt: Json = {"name": name, "description": description}
    return {**prompt, "arguments": described} if described else prompt


PROMPTS: list[Json] = [
    _prompt("test_simple_prompt", "Says one thing"),
    _prompt("test_prompt_with_arguments", "Says what it is given", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "Holds a resource", "resourceUri"),
    _prompt("test_prompt_with_image", "Holds an image"),
    _prompt("test_input_required_result_prompt", "Asks before it answers"),
]


async def get_prompt(name: str, arguments: dict[str, str], exchange: Exchange) -> list[Json]:
    """Return the messages of a prompt."""
    match name:
        case "test_prompt_with_arguments":
            given = f"arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
            contents = [text(f"Prompt with arguments: {given}")]
        case "test_prompt_with_embedded_resource":
            uri = arguments.get("resourceUri", "test://example-resource")
            contents = [embedded(uri, "Embedded resource content for testing."), text("Read it.")]
        case "test_prompt_with_image":
            contents = [image(), text("Look at it.")]
        case "test_input_required_result_prompt":
            question = form("What context should the prompt use?", context=_STRING)
            answer = await exchange.ask("user_context", "elicitation/create", question)
            contents = [text(f"Use this context: {answer.get('content')}")]
        case _:
            contents = [text("This is a simple prompt for testing.")]
    return [{"role": "user", "content": each} for each in contents]
