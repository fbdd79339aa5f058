"""What our own tools are called, as the file says it."""

from itertools import combinations
from typing import Annotated

from pydantic import AfterValidator, Field

from aggregator.config.base_form import BaseForm, problem
from aggregator.names import RESERVED, is_own_name, look_alike


def _own_name(value: str) -> str:
    if not is_own_name(value):
        raise problem(
            "must be up to 45 letters, digits and single underscores, and begin with a letter"
        )
    return value


OwnName = Annotated[str, AfterValidator(_own_name)]


class NamesForm(BaseForm):
    """What the aggregator's own tools are called."""

    search: OwnName = Field(RESERVED.search, description="Finds tools.")
    call: OwnName = Field(RESERVED.call, description="Calls a found tool.")
    call_read_only: OwnName = Field(
        RESERVED.call_read_only, description="Calls a found tool that only reads."
    )


def told_apart(value: NamesForm) -> NamesForm:
    """Refuse names that can be taken for one another."""
    named = {"search": value.search, "call": value.call, "callReadOnly": value.call_read_only}
    pairs = combinations(named.items(), 2)
    for (key, name), (other, alike) in pairs:
        if look_alike(name, alike):
            raise problem(
                f"gives two tools names that can be taken for one another: "
                f"`{name}` (`{key}`) and `{alike}` (`{other}`)"
            )
    return value
