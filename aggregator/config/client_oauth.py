"""How clients write down a login, in our form."""

from collections.abc import Iterator, Mapping

from aggregator.config.document import Value

_KEYS = {
    "clientid": "clientId",
    "clientsecret": "clientSecret",
    "redirecturi": "redirectUri",
    "callbackurl": "redirectUri",
    "issuer": "issuer",
    "resource": "resource",
    "clientmetadataurl": "clientMetadataUrl",
    "authorizationparams": "authorizationParams",
    "privatekey": "privateKey",
    "grant": "grant",
}
"""What their keys are here, without case and underscores."""


def translate_oauth(value: Value) -> Value:
    """Return a login in our form; nothing if nothing is left of it."""
    if not isinstance(value, dict):
        return value if value in ("true", "false") else None
    if value.get("enabled") == "false" or value.get("disabled") == "true":
        return "false"
    return dict(_translated(value)) or None


def _translated(value: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    for key, each in value.items():
        plain = key.lower().replace("_", "")
        if plain in _KEYS and each:
            yield _KEYS[plain], each
        elif plain in ("scope", "scopes") and each:
            yield "scopes", [*each.split()] if isinstance(each, str) else each
        elif plain == "callbackport" and each and "redirectUri" not in value:
            # Where all that have this key come back to.
            yield "redirectUri", f"http://localhost:{each}/callback"
