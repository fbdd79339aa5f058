"""The keys of `tokens` in `servers.yaml`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from aggregator.config.base_form import BaseForm, problem
from aggregator.config.quantities import address_fault
from aggregator.config.tokens import ENDINGS, PACKAGES, TokenCounter, Tokenizer

_HERE = ("localhost", "127.0.0.1", "::1")
_TOKENIZER = "must be `tiktoken:ENCODING` or `tokenizers:FILE`, or have `url` and `model`"


class TokensForm(BaseForm):
    """A tokenizer on this machine, or a vendor's counter."""

    tokenizer: str = Field(
        "", description="`tiktoken:ENCODING` or `tokenizers:FILE`; needs that package installed."
    )
    url: str = Field(
        "",
        description="The address of a vendor's counter; ends in `count_tokens` or `input_tokens`.",
    )
    model: str = Field("", description="The model to count for.")
    key: str = Field("", description="The API key to send to it, such as `${ANTHROPIC_API_KEY}`.")


def parse_tokens(value: object) -> object:
    """Read a text as the name of a tokenizer, and anything else as the form."""
    return {"tokenizer": value} if isinstance(value, str) else value


def usable_tokens(form: TokensForm | None) -> TokensForm | None:
    """Refuse what nobody can count by."""
    if form is None:
        return None
    package, _, name = form.tokenizer.partition(":")
    if form.tokenizer:
        if package not in PACKAGES or not name or form.url or form.model or form.key:
            raise problem(_TOKENIZER)
    elif not form.url or not form.model:
        raise problem(_TOKENIZER)
    elif fault := address_fault(form.url):
        raise problem(f"has a `url` that {fault}")
    elif urlsplit(form.url).path.rpartition("/")[2] not in ENDINGS:
        raise problem("needs a `url` that ends in `/count_tokens` or `/input_tokens`")
    elif urlsplit(form.url).scheme == "http" and urlsplit(form.url).hostname not in _HERE:
        raise problem("needs a `url` that begins with https://, since a key is shown to it")
    return form


def counter_of(
    form: TokensForm | None, resolved: Callable[[str], Path]
) -> Tokenizer | TokenCounter | None:
    """Return who counts, if anybody does; files start beside the configuration."""
    if form is None:
        return None
    package, _, name = form.tokenizer.partition(":")
    match package:
        case "tiktoken":
            return Tokenizer("tiktoken", name)
        case "tokenizers":
            return Tokenizer("tokenizers", str(resolved(name)))
        case _:
            return TokenCounter(form.url, form.model, form.key)


class AlsoAText:
    """Has a schema say that a text may stand in the place of an object."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(schema)]}
