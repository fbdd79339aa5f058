"""The requests that we answer ourselves, and whether one is in order."""

from collections.abc import Mapping

import mcp_types as types
from mcp_types.methods import validate_client_request
from pydantic import BaseModel, ValidationError

from aggregator.basics.json import is_object
from aggregator.basics.tasks import METHODS
from aggregator.upstream.caller import Context, era_of

SERVED: Mapping[str, type[BaseModel]] = {
    "tools/list": types.PaginatedRequestParams,
    "tools/call": types.CallToolRequestParams,
    "prompts/list": types.PaginatedRequestParams,
    "prompts/get": types.GetPromptRequestParams,
    "resources/list": types.PaginatedRequestParams,
    "resources/templates/list": types.PaginatedRequestParams,
    "resources/read": types.ReadResourceRequestParams,
    "resources/subscribe": types.SubscribeRequestParams,
    "resources/unsubscribe": types.UnsubscribeRequestParams,
    "completion/complete": types.CompleteRequestParams,
    "logging/setLevel": types.SetLevelRequestParams,
}
"""What we answer ourselves; the SDK derives our capabilities from it."""


def is_well_formed(ctx: Context) -> bool:
    """Whether a message is a request that we can answer without the SDK's help."""
    if not _is_answered(ctx) or ctx.request_id is None:
        return False
    if ctx.method in METHODS:
        return True
    if ctx.method == "tools/call":
        params = ctx.params or {}
        arguments = params.get("arguments")
        return isinstance(params.get("name"), str) and (arguments is None or is_object(arguments))
    try:
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    except (KeyError, ValidationError):
        return False
    return True


def _is_answered(ctx: Context) -> bool:
    """Whether we answer a method in the era of its client, once that has introduced itself."""
    if era_of(ctx) == "modern":
        return ctx.method in SERVED or ctx.method in METHODS
    return ctx.method in SERVED and ctx.session.client_params is not None
