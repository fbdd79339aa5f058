"""The keys of a client in `servers.yaml`, which may also be the name of a surface alone."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError

from aggregator.clients import SurfaceChoice
from aggregator.config.base_form import BaseForm, Seldom
from aggregator.config.notation import ResultTokens

SURFACES: tuple[SurfaceChoice, ...] = get_args(SurfaceChoice)


class ClientForm(BaseForm):
    """How one client is treated."""

    surface: SurfaceChoice | None = Field(None, description="How found tools reach it.")
    max_result_tokens: ResultTokens | None = Field(
        None, description="As at the top, for this client."
    )


def _surface(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in SURFACES:
        *others, last = map(repr, SURFACES)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})
    return {"surface": value}


class _AlsoASurface:
    """Has a schema say that the name of a surface may stand in the place of an object."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"enum": [*SURFACES]}, handler(schema)]}


NamedClient = Annotated[ClientForm, Seldom(ClientForm), BeforeValidator(_surface), _AlsoASurface]
"""A client under its name."""


def surfaces_of(clients: Mapping[str, ClientForm]) -> dict[str, SurfaceChoice]:
    """Return the surface of each client that has one."""
    return {name: each.surface for name, each in clients.items() if each.surface is not None}


def limits_of(clients: Mapping[str, ClientForm]) -> dict[str, int]:
    """Return what a result may cost the model of each client of which that is said."""
    limits = {name: each.max_result_tokens for name, each in clients.items()}
    return {name: limit for name, limit in limits.items() if limit is not None}
