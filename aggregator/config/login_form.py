"""The keys of `oauth` in `servers.yaml`, what each may hold, and what each is for."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema

from aggregator.config.oauth import Grant
from aggregator.config.quantities import address_fault
from aggregator.config.sheet import SWITCH, Sheet, Words, problem


def _address(value: str) -> str:
    if fault := address_fault(value):
        raise problem(fault)
    return value


def _resource(value: object) -> object:
    if SWITCH.get(str(value).lower()) is False:
        return False
    if not isinstance(value, str):
        raise problem("must be an address or `false`")
    if fault := address_fault(value):
        raise problem(f"must be an address or `false`; it {fault}")
    return value


Address = Annotated[str, AfterValidator(_address)]
Resource = Annotated[
    str | Literal[False],
    BeforeValidator(_resource),
    WithJsonSchema({"type": ["string", "boolean"]}),
]


class OAuthForm(Sheet):
    """How to log in to a server: most need nothing of it."""

    client_id: str | None = Field(None, description="What you are registered as.")
    client_secret: str | None = Field(None, description="The secret of that client.")
    private_key: str | None = Field(
        None, description="A file with the key to sign with, in the place of a secret."
    )
    scopes: Words = Field((), description="What to ask for, in the place of what it suggests.")
    redirect_uri: Address | None = Field(
        None, description="Where the browser comes back to, if that must be registered."
    )
    authorization_params: dict[str, str] = Field(
        {}, description="What to add to the address at which you log in."
    )
    resource: Resource | None = Field(
        None, description="What the login is for, if not its `url`; false to say nothing of it."
    )
    issuer: Address | None = Field(None, description="The only authorisation server to believe.")
    client_metadata_url: Address | None = Field(
        None, description="An https document that says who you are, where that is understood."
    )
    verify: bool = Field(
        True,
        description="Whether an authorisation server elsewhere must prove who it is, "
        "whatever `verify` says of the server.",
    )
    grant: Grant = Field(
        "authorization_code",
        description="`client_credentials` for a server that no person logs in to.",
    )


NO_LOGIN = OAuthForm.model_construct()
"""What `false` stands for."""


def parse_login(value: object) -> object:
    """Read `true` and `false` as such, and anything else as the form."""
    switch = SWITCH.get(value.lower(), value) if isinstance(value, str) else value
    return (
        (OAuthForm.model_construct() if switch else NO_LOGIN) if switch in (True, False) else value
    )


class AlsoABoolean:
    """Has a schema say that a boolean may stand in the place of an object."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, handler(schema)]}
