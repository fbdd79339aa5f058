"""The keys of `audit` in `servers.yaml`."""

from pydantic import Field

from aggregator.config.audit import MAX_BYTES, ArgumentsChoice
from aggregator.config.base_form import BaseForm


class AuditForm(BaseForm):
    """A line of JSON for each call."""

    file: str = Field(description="The file to append to; only its owner may read it.")
    arguments: ArgumentsChoice = Field(
        "none", description="What is recorded of arguments: nothing, their SHA-256, or everything."
    )
    required: bool = Field(
        False, description="Whether calls are refused while the file cannot be written."
    )
    max_bytes: int = Field(
        MAX_BYTES,
        ge=64 * 1024,
        le=1 << 40,
        description="Size in bytes at which a new file is begun; the previous five are kept.",
    )
