"""What the SDK keeps of a login while it is made, and what we keep of it then."""

from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from aggregator.config.oauth import OAuth
from aggregator.downstream.login.record import Client, Login


class SdkStorage:
    """What the SDK keeps during one login."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return what was given."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take note of what is given."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what we are known as."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take note of what we are known as from here on."""
        self.client = client_info


def known_client(oauth: OAuth, known: Login | None, uri: str) -> OAuthClientInformationFull | None:
    """Return what we are known as: what the file says, or what was registered before."""
    if oauth.client_id is not None:
        return OAuthClientInformationFull(
            client_id=oauth.client_id,
            client_secret=oauth.client_secret,
            redirect_uris=[AnyUrl(uri)],
            token_endpoint_auth_method="client_secret_basic" if oauth.client_secret else "none",
        )
    client = known.client if known else None
    # One that is refused, or that a browser would come back to elsewhere, is of no use any more.
    if known is None or client is None or not client.is_registered:
        return None
    if known.lost == "invalid_client" or uri not in client.redirect_uris:
        return None
    return OAuthClientInformationFull(
        client_id=client.id,
        client_secret=client.secret,
        redirect_uris=[AnyUrl(each) for each in client.redirect_uris],
        token_endpoint_auth_method=client.method,
        issuer=known.issuer,
    )


def as_kept(client: OAuthClientInformationFull, oauth: OAuth) -> Client:
    """Return what is kept of a client."""
    by_hand = (oauth.client_id, oauth.client_metadata_url)
    return Client(
        client.client_id,
        client.client_secret,
        client.token_endpoint_auth_method,
        tuple(map(str, client.redirect_uris or ())),
        is_registered=client.client_id not in by_hand,
    )


def end_of(tokens: OAuthToken, obtained_at: float) -> float | None:
    """Return when tokens expire, if that is said."""
    return obtained_at + tokens.expires_in if tokens.expires_in else None
