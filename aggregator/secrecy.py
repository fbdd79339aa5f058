"""Tell what must not be shown or written down from what may."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

HIDDEN = "***"
"""What stands in the place of a secret."""

SHORTEST = 6
"""Characters below which a value is a setting, not a secret."""

_NAMES = re.compile(
    r"(?:^|[_\W])(?:key|apikey|token|secret|password|passwd|pass|pwd|pat|credentials?|auth"
    r"|authorization|cookie|dsn|bearer|jwt|private)(?:$|[_\W\d])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VALUES = re.compile(
    r"(?<![\w-])(?:gh[opsur]_|github_pat_|glpat-|sk-|pk_live_|[sr]k_live_|xox[abeprs]-|AKIA|AIza"
    r"|ya29\.|eyJ[\w-]{1,4000}\.|hf_|npm_|pypi-|lin_api_|ntn_|secret_|figd_|dop_v1_|SG\.)[\w.-]{8,}"
)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_HARMLESS = re.compile(r"[\d.]+|true|false|yes|no|on|off|none|null|[./~].*", re.IGNORECASE)


def is_secret(name: str, value: str) -> bool:
    """Return whether a value, by its name or by its look, should be kept out of sight."""
    rest = _REFERENCE.sub("", value).strip()
    if looks_secret(rest):
        return True
    # What stands beside a reference, such as `Bearer`, says how it is sent.
    if rest != value.strip() or len(rest) < SHORTEST or _HARMLESS.fullmatch(rest):
        return False
    return names_secret(name)


def secret_arguments(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the option and the value of each argument that should be kept out of sight."""
    for before, argument in pairwise(("", *arguments)):
        name, equals, value = argument.partition("=")
        if equals and is_secret(name, value):
            yield name, value
        elif is_secret("" if equals or "=" in before else before, argument):
            yield before, argument


def looks_secret(value: str) -> bool:
    """Return whether a value has the form in which well-known services hand out secrets."""
    return _VALUES.search(value) is not None


def without_secrets(text: str) -> str:
    """Return a text without what has the form of a secret, whoever it belongs to."""
    return _USER_INFO.sub(HIDDEN, _VALUES.sub(HIDDEN, text))


def names_secret(name: str) -> bool:
    """Return whether a variable, header or option of this name usually holds a secret."""
    return _NAMES.search(_CAMEL.sub("_", name)) is not None
