"""What a model asked for in a message, and the messages that answer it."""

from collections.abc import Sequence
from typing import Any

from aggregator.host.gates import Carry
from aggregator.host.messages.history import Message, blocks
from aggregator.host.plain import plain
from aggregator.host.results import Finding, Result, messages_content
from aggregator.host.speech import loaded
from aggregator.host.uses import Use, read_use


def uses(response: object) -> list[Use]:
    """Return what a model asks for, in its order."""
    return [
        read_use(str(block.get("id")), str(block.get("name")), block.get("input"))
        for block in blocks(plain(response))
        if block.get("type") == "tool_use"
    ]


def answered(
    response: object, outcomes: Sequence[tuple[Use, Finding | Result]], carry: Carry
) -> list[Message]:
    """Return the model's message, and the results it asked for."""
    said = plain(response)
    messages: list[Message] = [{"role": "assistant", "content": said.get("content", [])}]
    if not outcomes:
        return messages
    results = [_result(use, outcome, carry) for use, outcome in outcomes]
    findings = [outcome for _, outcome in outcomes if isinstance(outcome, Finding)]
    remarks = dict.fromkeys(each.remark for each in findings if each.tools and each.remark)
    texts = [{"type": "text", "text": remark} for remark in remarks]
    messages.append({"role": "user", "content": [*results, *texts]})
    return messages


def _result(use: Use, outcome: Finding | Result, carry: Carry) -> Message:
    block: Message = {"type": "tool_result", "tool_use_id": use.id}
    if isinstance(outcome, Result):
        failed = {"is_error": True} if outcome.is_error else {}
        return {**block, "content": messages_content(outcome), **failed}
    return {**block, "content": _found(outcome, carry)}


def _found(finding: Finding, carry: Carry) -> list[Any]:
    names = [tool.name for tool in finding.tools]
    if not names:
        return [{"type": "text", "text": finding.remark}]
    if carry == "reference":
        return [{"type": "tool_reference", "tool_name": name} for name in names]
    return [{"type": "text", "text": loaded(names)}]
