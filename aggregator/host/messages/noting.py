"""Notes among the messages of a conversation."""

from collections.abc import Sequence
from typing import Any

from aggregator.basics.json import is_array
from aggregator.host.announcing import Note
from aggregator.host.gates import Carry
from aggregator.host.messages.history import Message


def takes_note(history: Sequence[Message], carry: Carry) -> bool:
    """Whether something can be said at the end of a history: it must be the model's turn."""
    return bool(history) and history[-1].get("role") in _taking(carry)


def annotated(history: Sequence[Message], notes: Sequence[Note], carry: Carry) -> list[Message]:
    """Return a history with notes at their places."""
    messages: list[Message] = []
    for before, message in enumerate(history, 1):
        messages.append(message)
        for note in notes:
            if note.at == before:
                _put(note, messages, carry)
    return messages


def _taking(carry: Carry) -> tuple[str, ...]:
    return ("user", "system") if carry == "inline" else ("user",)


def _put(note: Note, messages: list[Message], carry: Carry) -> None:
    """Say something after the last of some messages, as a part of it where that is possible."""
    said: list[Any] = [{"type": "text", "text": note.text}] if note.text else []
    if carry == "inline":
        said = [*note.changes, *said]
        if messages[-1].get("role") != "system":
            messages.append({"role": "system", "content": said})
            return
    if said and messages[-1].get("role") in _taking(carry):
        messages[-1] = {**messages[-1], "content": [*_content(messages[-1]), *said]}


def _content(message: Message) -> list[Any]:
    content = message.get("content")
    return content if is_array(content) else [{"type": "text", "text": str(content)}]
