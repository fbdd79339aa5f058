"""The result of a tool as text for people."""

import json
from typing import Any


def text_of(result: dict[str, Any]) -> str:
    """Return what a tool answered; what is not text is described."""
    blocks: list[dict[str, Any]] = result.get("content") or []
    structured = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        described = [_described(block) for block in blocks]
        return "\n".join([*described, json.dumps(structured, ensure_ascii=False, indent=2)])
    return "\n".join(_described(block) for block in blocks) or "(an empty result)"


def _described(block: dict[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return _bytes(kind, block.get("mimeType"), data)
        case {"type": "resource_link", "uri": uri}:
            return f"[link to {block.get('title') or block.get('name') or 'a resource'}: {uri}]"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": uri, "blob": str(data)} as resource}:
            return _bytes(f"resource {uri}", resource.get("mimeType"), data)
        case _:
            return json.dumps(block, ensure_ascii=False)


def _bytes(kind: str, mime_type: object, data: str) -> str:
    """Describe what is sent as Base64: three bytes in four characters."""
    size = len(data.rstrip("=")) * 3 // 4
    return f"[{kind}, {mime_type or 'unknown type'}, {size:,} bytes; --raw prints it as Base64]"
