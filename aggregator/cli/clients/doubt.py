"""Whether a value may be a secret, where it costs nothing to take one for it that is none."""

import re

from aggregator.secrecy import in_words, is_secret

SHORTEST = 16
"""Characters in a row that nobody but a machine makes up."""
LEAST_CHANGES = 4
"""Changes between small letters, capitals and digits in what a machine makes up."""

_IDENTIFIES = re.compile(
    r"(?:^|[_\W])(?:id|ids|uuid|guid|sha|sha1|sha256|commit|digest|hash|checksum|rev|revision|ref"
    r"|version|image|model|fingerprint|public[_\W]?key)$",
    re.IGNORECASE,
)
"""How names end of what a machine made up and anybody may know."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TOKEN = re.compile(rf"[A-Za-z0-9_.~+=-]{{{SHORTEST},}}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{38,}={0,2}")
_PARTS = re.compile(r"[-_.~+=]+")
_CHANGE = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[a-z0-9])|(?<=[0-9])(?=[A-Za-z])")


def may_be_secret(name: str, value: str) -> bool:
    """Return whether a value should be kept out of sight, be it only in doubt."""
    return is_secret(name, value) or (is_random(value) and not _IDENTIFIES.search(in_words(name)))


def is_random(value: str) -> bool:
    """Return whether a value looks like what a machine made up, as keys and capabilities are."""
    if _UUID.fullmatch(value):
        return True
    if _BASE64.fullmatch(value):
        return _has_changes(re.sub("[+/=]", "", value), least=len(value) // 4)
    if not _TOKEN.fullmatch(value):
        return False
    longest = max(_PARTS.split(value), key=len)
    return len(longest) >= SHORTEST and _has_changes(longest)


def _has_changes(text: str, least: int = LEAST_CHANGES) -> bool:
    """Return whether letters and digits, or small letters and capitals, are thrown together."""
    changes = len(_CHANGE.findall(text))
    has_digits = any(each.isdigit() for each in text)
    return not text.isdigit() and changes >= (least if has_digits else max(least, len(text) // 3))
