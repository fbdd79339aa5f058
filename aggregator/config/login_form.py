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

from aggregator.config.base_form import SWITCH, BaseForm, Words, problem
from aggregator.config.oauth import Grant
from aggregator.config.quantities import address_fault


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


class OAuthForm(BaseForm):
    """How to log in to a server; most servers need none of this."""

    client_id: str | None = Field(None, description="The ID of the client you registered.")
    client_secret: str | None = Field(None, description="The secret of that client.")
    private_key: str | None = Field(
        None, description="A file with the key to sign with, instead of a secret."
    )
    scopes: Words = Field(
        (), description="The scopes to ask for, instead of those the server suggests."
    )
    redirect_uri: Address | None = Field(
        None, description="Where the browser returns to, if that must be registered."
    )
    authorization_params: dict[str, str] = Field(
        {}, description="Parameters to add to the address at which you log in."
    )
    resource: Resource | None = Field(
        None, description="What the login is for, if not the server's `url`; false to leave it out."
    )
    issuer: Address | None = Field(None, description="The only authorisation server to trust.")
    client_metadata_url: Address | None = Field(
        None,
        description="The https address of a document that describes the client, where supported.",
    )
    verify: bool = Field(
        True,
        description="Whether to check the certificates of authorisation servers elsewhere, "
        "whatever `verify` says for the server.",
    )
    grant: Grant = Field(
        "authorization_code",
        description="`client_credentials` if no person logs in.",
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
