"""Tell what must not be shown or written down from what may."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "***"
"""What stands in the place of a secret."""

SHORTEST = 6
"""Characters below which a value is a setting, not a secret."""
LONGEST = 4100
"""Characters of which a part may be needed to see that they have the form of a secret."""

_NAMES = re.compile(
    r"(?:^|[_\W])(?:key|token|pass|pwd|pw|psk|pat|creds?|auth|authorization|cookie|dsn|bearer|jwt"
    r"|private|otp|totp|mnemonic|salt|hmac|sig|signature)(?:$|[_\W\d])"
    r"|passw|passphrase|passcode|secret|credential|(?:api|access|account|auth|private|shared)key"
    r"|(?:api|access|auth|bearer|refresh)token",
    re.IGNORECASE,
)
_ABOUT = frozenset({
    "url", "uri", "endpoint", "host", "port", "file", "path", "dir", "name", "type", "method",
    "mode", "scheme", "provider", "issuer", "audience", "scope", "scopes", "algorithm", "header",
    "prefix", "format", "limit", "count", "size", "ttl", "timeout", "length", "enabled",
    "required", "store", "backend",
})  # fmt: skip
"""How names end of what is said about a secret, and is none itself."""
_LAST_WORD = re.compile(r"[^_\W]*$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VALUES = re.compile(
    r"(?<![\w-])(?:gh[opsurv]_|github_pat_|glpat-|sk-|pk_live_|[sr]k_(?:live|test)_|xox[abcdeprs]-"
    r"|xapp-|AKIA|ASIA|AIza|ya29\.|eyJ[\w-]{1,4000}\.|hf_|npm_|pypi-|lin_api_|ntn_|secret_|figd_"
    r"|dop_v1_|SG\.|whsec_|shp(?:at|ss|ca|pa)_|sntry[su]_|sbp_|glsa_|glc_|GOCSPX-|nvapi-|gsk_|r8_"
    r"|pplx-|tvly-|tskey-|hvs\.|dckr_pat_|ATATT|ATCTT|pscale_|rubygems_|PMAK-|lsv2_|apify_api_"
    r"|ctx7sk-|dapi[0-9a-f]{24})[\w.-]{8,}"
)
_PRIVATE_KEY = "PRIVATE KEY-----"
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_QUERY = re.compile(r"[?&#]([^\s?&#=]+)=([^\s&#\"']+)")
_PAIR = re.compile(
    r"""(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]*)["']?[ ]?[=:][ ]?["']?"""
    r"""(?=(?:(?:bearer|basic|token|apikey)\s)?([^\s"';&,]+))""",
    re.IGNORECASE,
)
"""What begins `NAME=value`, `Name: Bearer value` and `"name": "value"`, and the value."""
_REFERENCE = re.compile(r"\$\{[^}]*\}")
_HARMLESS = re.compile(
    r"[\d.]+|true|false|yes|no|on|off|none|null|[./~].*|[A-Za-z]:[\\/].*", re.IGNORECASE | re.DOTALL
)

_PLAINLY = re.compile(
    r"passw|passphrase|passcode|secret|token(?:$|[_\W\d])|(?:^|[_\W])(?:pass|pwd|pw)(?:$|[_\W\d])",
    re.IGNORECASE,
)
"""What says that a value is a secret, even one of digits alone."""
_PATH = re.compile(r"(?:~|\.{1,2})?/.*[\w.]/.*|(?:~|\.{1,2})/.*|[A-Za-z]:[\\/].*", re.DOTALL)


def is_secret(name: str, value: str) -> bool:
    """Return whether a value, by its name or by its look, should be kept out of sight."""
    rest = _REFERENCE.sub("", value).strip()
    if looks_secret(rest):
        return True
    # What stands beside a reference, such as `Bearer`, says how it is sent.
    if rest != value.strip() or len(rest) < SHORTEST or not names_secret(name):
        return False
    harmless = _PATH if _PLAINLY.search(in_words(name)) else _HARMLESS
    return harmless.fullmatch(rest) is None


def secret_arguments(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the option and the value of each argument that should be kept out of sight."""
    for before, argument in pairwise(("", *arguments)):
        yield from dict.fromkeys(_secrets_of(before, argument))


def _secrets_of(before: str, argument: str) -> Iterator[tuple[str, str]]:
    name, equals, value = argument.partition("=")
    if equals and is_secret(name, value):
        yield name, value
    elif is_secret("" if equals or "=" in before else before, argument):
        # What stands before may be one itself.
        yield before if before.startswith("-") else "argument", argument
    yield from (found for found in _PAIR.findall(argument) if is_secret(*found))
    yield from _secret_parts(argument)


def _secret_parts(url: str) -> Iterator[tuple[str, str]]:
    """Yield what of an address should be kept out of sight, as it stands there and as it is read.

    These are the password, or the user alone, and parameters that are named like secrets.
    """
    logins = (("login", found[0].rpartition(":")[2]) for found in _USER_INFO.finditer(url))
    named = (found for found in _QUERY.findall(url) if is_secret(*found))
    for name, value in (*logins, *named):
        yield name, value
        yield name, unquote(value)


def looks_secret(value: str) -> bool:
    """Return whether a value has the form in which well-known services hand out secrets."""
    return _VALUES.search(value) is not None or _PRIVATE_KEY in value


def well_known(text: str) -> Iterator[str]:
    """Yield what in a text has the form in which well-known services hand out secrets."""
    return (found[0] for found in _VALUES.finditer(text))


def without_secrets(text: str) -> str:
    """Return a text without what has the form of a secret, whoever it belongs to."""
    return _USER_INFO.sub(HIDDEN, _VALUES.sub(HIDDEN, text))


def names_secret(name: str) -> bool:
    """Return whether a variable, header or option of this name usually holds a secret."""
    words = in_words(name)
    last = _LAST_WORD.search(words)
    return _NAMES.search(words) is not None and (last is None or last[0].lower() not in _ABOUT)


def in_words(name: str) -> str:
    """Return a name with its words apart, however they are joined."""
    return _CAMEL.sub("_", name)


def forms(value: str) -> set[str]:
    """Return a value as programs write it: as it is, line by line, escaped, or in an address.

    Forms that are too short are left out: they occur by chance in any text.
    """
    found = {value}
    if not value.isalnum():
        raw = value.encode(errors="surrogateescape")
        found |= {quote(raw), quote(raw, safe=""), quote_plus(raw), repr(value)[1:-1]}
        found |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        found.update(map(str.strip, value.splitlines()))
    return {each for each in found if len(each) >= SHORTEST}


class Redaction:
    """Takes values out of a text that were given in confidence."""

    def __init__(self, confided: Iterable[tuple[str, str]]) -> None:
        self._confided = confided

    @cached_property
    def _hidden(self) -> list[tuple[str, str]]:
        """What is looked for; most servers never say anything, and all start at once."""
        hidden = {form: name for name, value in self._confided for form in forms(value)}
        # The longest first, or a value that contains another would show its rest.
        return sorted(hidden.items(), key=lambda pair: len(pair[0]), reverse=True)

    def named(self, text: str) -> str:
        """Return the text with each value replaced by its name."""
        for value, name in self._hidden:
            if value in text:
                text = text.replace(value, f"[{name}]")
        return text

    def beginning(self, text: str, most: int) -> str:
        """Return so many characters at most of a text without secrets.

        Of no secret is half left that has up to 4,100 characters or was given in confidence.
        Of a long text no more is looked at than that takes, since anybody may have sent it.
        """
        half = max([LONGEST, *(len(value) for value, _ in self._hidden[:1])])
        looked_at = most + 2 * half
        if len(text) <= looked_at:
            return self(text)[:most]
        # What was cut in two at the end is not recognised, and left out as a whole.
        return self(text[:looked_at])[:-half][:most] or HIDDEN

    def __call__(self, text: str) -> str:
        """Return the text also without what looks like a secret of anybody else."""
        return without_secrets(self.named(text))
