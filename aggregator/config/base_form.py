"""What every form of `servers.yaml` has in common."""

from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from aggregator.basics.json import is_array
from aggregator.config.kinds import EVERY_KIND, FoundKind

SWITCH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
"""How people write that something is so, or is not."""
TEXT_OR_LIST: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}


class BaseForm(BaseModel):
    """A form whose keys are written in camel case, and which knows no others."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        # Most files have none of most forms, and each takes a millisecond to be made ready.
        defer_build=True,
    )


class Seldom(NamedTuple):
    """Marks a form inside another as one to be made ready only where somebody has written it."""

    form: type[BaseForm]

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.form.model_validate)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        # As a definition it is described once, and referred to.
        return handler(core_schema.definitions_schema(TypeAdapter(self.form).core_schema, []))


def problem(expected: str) -> PydanticCustomError:
    """Return an error whose text is ours alone: pydantic's own may quote what was written."""
    return PydanticCustomError("unexpected", "{expected}", {"expected": expected})


def _words(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _kinds(value: object) -> object:
    """Read one kind or several, in the singular or the plural."""
    each = [value] if isinstance(value, str) else value
    if not is_array(each):
        return each
    return tuple(one.lower().removesuffix("s") if isinstance(one, str) else one for one in each)


Words = Annotated[tuple[str, ...], BeforeValidator(_words), WithJsonSchema(TEXT_OR_LIST)]
Kinds = Annotated[
    tuple[FoundKind, ...],
    BeforeValidator(_kinds),
    WithJsonSchema({"type": "array", "items": {"enum": list(EVERY_KIND)}}),
]
