"""A login in the making: what the SDK knows of OAuth, asked by a server and answered by a person.

It stands where credentials stand at run time. Only who logs in imports it: the SDK's part takes
a second to load.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import anyio
import httpx2
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
)
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientMetadata,
    OAuthMetadata,
)
from pydantic import AnyUrl

from aggregator.config.oauth import OAuth
from aggregator.downstream.login.callback import Callback, LoginError
from aggregator.downstream.login.challenge import challenge
from aggregator.downstream.login.credentials import RenewalError
from aggregator.downstream.login.discovery import astray, covers, origin
from aggregator.downstream.login.presets import Preset, preset
from aggregator.downstream.login.record import Login
from aggregator.downstream.login.renewal import Refused, Reply, Unavailable, outcome, quoted
from aggregator.downstream.login.sdk_storage import SdkStorage, as_kept, end_of, known_client
from aggregator.downstream.transport import Undelivered

MAX_ROUNDS = 3
"""Times a person is sent to log in for one login: a server may ask for more after the first."""
NAME = "MCP Tool Aggregator"
"""What a person is asked to let in."""

Carry = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
"""Sends a request to an authorisation server and returns all of its answer, within bounds."""
Show = Callable[[str, str], Awaitable[None]]
"""Shows a person where to log in, and who will ask them for a password."""

# It logs what it raises, and some of that with what it was answered.
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)


class Interview:
    """One login to one server, as far as it has come."""

    def __init__(
        self,
        url: str,
        oauth: OAuth,
        callback: Callback,
        *,
        carry: Carry,
        show: Show,
        scopes: tuple[str, ...],
        known: Login | None,
        warn: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.problem: LoginError | None = None
        self._url = url
        self._oauth = oauth
        self._callback = callback
        self._carry = carry
        self._show = show
        self._scopes = scopes
        self._warn = warn
        self._clock = clock
        self._rounds = 0
        self._asked = frozenset[str]()
        """The scopes that a person was asked for."""
        self._turn = anyio.Lock()
        self._obtained_at = 0.0
        self._storage = SdkStorage(known_client(oauth, known, callback.uri))
        self._provider = OAuthClientProvider(
            url,
            OAuthClientMetadata(
                client_name=NAME,
                redirect_uris=[AnyUrl(callback.uri)],
                token_endpoint_auth_method=None if oauth.client_secret else "none",
            ),
            self._storage,
            redirect_handler=self._send_person,
            callback_handler=self._await_person,
            client_metadata_url=oauth.client_metadata_url,
            validate_resource_url=self._check_resource,
        )

    def at_hand(self) -> None:
        """Return nothing: what is shown is asked for."""

    async def token(self) -> str | None:
        """Return what this login has given so far."""
        return self._storage.tokens.access_token if self._storage.tokens else None

    async def instead_of(
        self, refused: str | None, status: int, headers: Mapping[str, str]
    ) -> str | None:
        """Have a person log in, since the server wants that."""
        said = challenge(headers)
        is_known = self._asked and self._asked.issuperset(said.scope.split())
        if status != HTTPStatus.UNAUTHORIZED and (not said.wants_more or is_known):
            # Who was asked for these rights and has not got them will not get them now.
            return None
        async with self._turn:
            if (token := await self.token()) == refused:
                await self._converse(httpx2.Response(status, headers=self._asking(headers)))
                token = await self.token()
        return token

    async def begin(self) -> None:
        """Have a person log in, although the server has not asked for it.

        Raises:
            RenewalError: That did not come about.
        """
        headers = self._asking({"www-authenticate": "Bearer"})
        await self._converse(httpx2.Response(HTTPStatus.UNAUTHORIZED, headers=headers))

    def explain(self, status: int, headers: Mapping[str, str]) -> Undelivered | None:
        """Say of a refusal after the login that it is one."""
        if status == HTTPStatus.UNAUTHORIZED and self._storage.tokens is not None:
            reason = "it does not accept the login that was just made (401)"
            return Undelivered(reason, may_have_run=False, is_barred=True)
        if status == HTTPStatus.FORBIDDEN and challenge(headers).wants_more:
            return Undelivered("it wants more rights than it was given (403)", may_have_run=False)
        return None

    @property
    def login(self) -> Login | None:
        """What is to be kept, once it is complete."""
        tokens, client, context = self._storage.tokens, self._storage.client, self._provider.context
        if tokens is None or client is None:
            return None
        metadata, base = context.oauth_metadata, origin(self._url)
        revocation = metadata and metadata.revocation_endpoint
        return Login(
            url=self._url,
            issuer=str(metadata.issuer) if metadata else base,
            token_endpoint=str(metadata.token_endpoint) if metadata else f"{base}/token",
            revocation_endpoint=str(revocation) if revocation else None,
            client=as_kept(client, self._oauth),
            access_token=tokens.access_token,
            obtained_at=self._obtained_at,
            expires_at=end_of(tokens, self._obtained_at),
            refresh_token=tokens.refresh_token,
            scope=tokens.scope or "",
            resource=self._resource(),
        )

    async def _converse(self, response: httpx2.Response) -> None:
        """Have the SDK do what a refusal leads to, and carry what it sends."""
        request = httpx2.Request("POST", self._url, headers={"mcp-protocol-version": "2025-11-25"})
        response.request = request
        flow = self._provider.async_auth_flow(request)
        try:
            await self._carry_all(flow, request, response)
        except LoginError as error:
            self.problem = error
        except (OAuthFlowError, ValueError) as error:
            self.problem = self._in_words(error)
        finally:
            await flow.aclose()
        if self.problem is not None:
            raise RenewalError(str(self.problem)) from self.problem

    async def _carry_all(
        self,
        flow: AsyncGenerator[httpx2.Request, httpx2.Response],
        request: httpx2.Request,
        response: httpx2.Response,
    ) -> None:
        await anext(flow)  # what was refused, and need not be sent again
        outgoing = await flow.asend(response)
        while outgoing is not request:
            is_for_token = outgoing.url == self._token_endpoint()
            answer = await self._carry(self._adjusted(outgoing) if is_for_token else outgoing)
            if is_for_token:
                self._obtained_at = self._clock()
                _check_tokens(answer)
            outgoing = await flow.asend(answer)

    def _token_endpoint(self) -> httpx2.URL:
        metadata = self._provider.context.oauth_metadata
        found = str(metadata.token_endpoint) if metadata else f"{origin(self._url)}/token"
        return httpx2.URL(found)

    def _asking(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return a challenge that asks for the scopes that a person wants."""
        said = challenge(headers)
        if not self._scopes:
            return {"www-authenticate": headers.get("www-authenticate", "")}
        wanted = dict.fromkeys((*self._scopes, *(said.scope.split() if said.wants_more else ())))
        parameters = {
            "error": said.error,
            "resource_metadata": said.resource_metadata,
            "scope": " ".join(wanted),
        }
        told = ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value)
        return {"www-authenticate": f"Bearer {told}"}

    def _adjusted(self, request: httpx2.Request) -> httpx2.Request:
        """Say in a request for tokens what they are for, as far as that is to be said."""
        form = dict(parse_qsl(request.content.decode(), keep_blank_values=True))
        form = _naming(form, self._resource())
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in ("content-length", "host")
        }
        content = urlencode(form).encode()
        return httpx2.Request(request.method, request.url, headers=headers, content=content)

    def _resource(self) -> str | None:
        wanted = self._oauth.resource
        if wanted is None:
            wanted = self._preset.resource
        if wanted is False:
            return None
        # By the specification it is said whatever the authorisation server knows of it.
        return wanted or self._provider.context.get_resource_url()

    @property
    def _preset(self) -> Preset:
        metadata = self._provider.context.oauth_metadata
        return preset(self._url, str(metadata.issuer) if metadata else None)

    async def _check_resource(self, url: str, resource: str | None) -> None:
        if self._oauth.resource is not None or resource is None:
            return
        if not covers(resource, url):
            raise LoginError(
                f"it says that logins are for `{quoted(resource)}`, and it is at `{url}`",
                "If you trust it, write `resource` under `oauth` in servers.yaml",
            )

    async def _send_person(self, address: str) -> None:
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            raise LoginError("it asks for another login after each")
        metadata = self._provider.context.oauth_metadata
        self._check(metadata)
        self._settle_method(metadata)
        parts = urlsplit(address)
        query = _naming(dict(parse_qsl(parts.query)), self._resource())
        self._asked = frozenset(query.get("scope", "").split())
        query |= {**self._preset.authorization_params, **self._oauth.authorization_params}
        address = urlunsplit(parts._replace(query=urlencode(query)))
        if not (address.isascii() and address.isprintable()):
            raise LoginError("its authorisation server names no address to log in at")
        if (wrong := astray(address, self._url)) is not None:
            named = quoted(urlunsplit(parts._replace(query="")))
            raise LoginError(f"you would have to log in at `{named}`, which {wrong}")
        self._callback.expect(address)
        await self._show(address, str(metadata.issuer) if metadata else origin(self._url))

    def _check(self, metadata: OAuthMetadata | None) -> None:
        issuer = str(metadata.issuer) if metadata else origin(self._url)
        if self._oauth.issuer is not None and not issuers_match(self._oauth.issuer, issuer):
            raise LoginError(
                f"its authorisation server is `{quoted(issuer)}`, "
                f"and `issuer` in servers.yaml says `{self._oauth.issuer}`"
            )
        methods = metadata.code_challenge_methods_supported if metadata else None
        if methods is not None and "S256" not in methods:
            raise LoginError("its authorisation server does not support PKCE with S256")
        if metadata is not None and methods is None:
            self._warn("its authorisation server does not say that it supports PKCE")

    def _settle_method(self, metadata: OAuthMetadata | None) -> None:
        """Choose how a client that was registered by hand proves itself."""
        client = self._storage.client
        if client is None or client.client_id != self._oauth.client_id:
            return
        known = (metadata and metadata.token_endpoint_auth_methods_supported) or []
        if client.client_secret is not None:
            post = "client_secret_basic" not in known and "client_secret_post" in known
            client.token_endpoint_auth_method = (
                "client_secret_post" if post else "client_secret_basic"
            )

    async def _await_person(self) -> AuthorizationCodeResult:
        returned = await self._callback.returned()
        metadata = self._provider.context.oauth_metadata
        if returned.iss is not None and metadata and returned.iss != str(metadata.issuer):
            raise LoginError(
                f"the answer came from `{quoted(returned.iss)}`, and `{metadata.issuer}` was asked"
            )
        if returned.error:
            raise LoginError(_refusal(returned.error, returned.words))
        if not returned.code:
            raise LoginError("the authorisation server sent no code")
        return AuthorizationCodeResult(code=returned.code, state=returned.state, iss=returned.iss)

    def _in_words(self, error: Exception) -> LoginError:
        """Say what stood in the way; what the SDK says may quote more than is for eyes."""
        context = self._provider.context
        metadata = context.oauth_metadata
        if isinstance(error, OAuthRegistrationError):
            who = str(metadata.issuer) if metadata else origin(self._url)
            if metadata is None and not self._preset.advice:
                return LoginError(
                    f"`{who}` does not say how to log in",
                    "If it wants a key, write `headers: {Authorization: Bearer ${NAME}}` under it "
                    "in servers.yaml",
                )
            if metadata is None or metadata.registration_endpoint is None:
                advice = self._preset.advice or "Register a client there by hand"
                return LoginError(
                    f"nobody can register at `{who}` by a program",
                    f"{advice}; then write `oauth: {{clientId: …}}` under it in servers.yaml",
                )
            return LoginError(f"`{who}` refused to register a client: {_brief(error)}")
        return LoginError(_brief(error))


def _check_tokens(answer: httpx2.Response) -> None:
    """See to it that there are tokens: what the SDK says of anything else quotes it."""
    match outcome(Reply(answer.status_code, answer.content)):
        case Refused() as refused:
            raise LoginError(f"its authorisation server gives no token: {refused}")
        case Unavailable(reason):
            raise LoginError(f"its authorisation server gives no token: {reason}")
        case _:
            return


def _naming(form: dict[str, str], resource: str | None) -> dict[str, str]:
    form = {name: value for name, value in form.items() if name != "resource"}
    return form if resource is None else {**form, "resource": resource}


def _refusal(error: str, words: str) -> str:
    if error == "access_denied":
        return f"you, or a rule of your organisation, said no ({words or error})"
    return f"the authorisation server answered `{error}`" + (f": {words}" if words else "")


def _brief(error: Exception) -> str:
    return quoted(str(error)) or type(error).__name__
