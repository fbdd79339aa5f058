"""Who comes in by the word of an issuer: what they see, what is theirs, and what they are told."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import LATEST_MODERN_VERSION

from aggregator.config.http import AccessRule, Http
from aggregator.upstream.http.issuer.reading import LEEWAY
from aggregator.upstream.http.keys import Keys, Ring
from tests.downstream.http.test_reaching_servers import at
from tests.loopback.door import NO_CERTIFICATES, Open, door
from tests.loopback.scripted import Scripted
from tests.loopback.web import web
from tests.patience import PATIENCE
from tests.peers import ERAS, MODES, Era, Peer, connect_to, ready
from tests.upstream.http.issuer.issuing import (
    AUDIENCE,
    EVERYTHING,
    OPENID,
    Authority,
    settings,
    signer,
)
from tests.upstream.http.test_keys import HELLO, begun, client, request

pytestmark = pytest.mark.anyio

READS = AccessRule(("tools.read",), "reading"), EVERYTHING
ALL, SOME = ["notes__read", "notes__delete"], ["notes__read"]
METADATA = "/.well-known/oauth-protected-resource"


@pytest.fixture
async def authority() -> AsyncGenerator[Authority, None]:
    async with Authority().served() as serving:
        yield serving


@asynccontextmanager
async def open_to(http: Http, directory: Path, **options: Any) -> AsyncGenerator[Open, None]:
    servers = {"notes": connect_to(Peer("read", "delete"))}
    async with door(servers, directory, settings(http), **options) as opened:
        await ready(opened.upstream)
        yield opened


async def seen(opened: Open, token: str, era: Era = "modern", path: str = "") -> list[str]:
    """Return the tools that a client with a token sees."""
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
        ) as http,
        Client(
            streamable_http_client(f"{opened.url}{path}", http_client=http), mode=MODES[era]
        ) as one,
    ):
        return [tool.name for tool in (await one.list_tools()).tools]


async def status(opened: Open, token: str, path: str = "/mcp") -> httpx2.Response:
    async with client(token) as http:
        return await http.post(f"{opened.origin}{path}", json=HELLO)


@pytest.mark.parametrize("era", ERAS)
async def test_scopes_say_what_somebody_sees(
    era: Era, authority: Authority, tmp_path: Path
) -> None:
    async with open_to(authority.trusted(), tmp_path) as opened:
        found = [
            await seen(opened, authority.token(**claims), era, path)
            for claims, path in (
                ({"scope": "tools.read"}, ""),
                ({"scope": "openid tools.all"}, ""),
                ({"scope": None, "scp": ["tools.all"]}, ""),
                ({"scope": "tools.all tools.read"}, ""),
                ({"scope": "tools.all"}, "/reading"),
                ({"scope": "tools.read"}, "/reading"),
            )
        ]

    assert found == [SOME, ALL, ALL, SOME, SOME, SOME]


async def test_who_has_none_of_the_scopes_is_told_which_would_help(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = AccessRule(("tools.read",), "reading"), AccessRule(("a", "b"), "scope:a b")
    async with open_to(authority.trusted(*rules), tmp_path) as opened:
        nothing = await status(opened, authority.token(scope="other"))
        elsewhere = await status(opened, authority.token(scope="a b"), "/mcp/reading")
        nowhere = await status(opened, authority.token(), "/mcp/writing")
        of_all = [
            (await status(opened, authority.token(), path)).status_code
            for path in ("/metrics", "/activity", "/stats")
        ]

    assert nothing.status_code == elsewhere.status_code == 403
    (logged,) = (each.message for each in caplog.records if " 403: " in each.message)
    assert logged.endswith("its token has no scope that a rule of `http.access` asks for")
    told = nothing.headers["www-authenticate"]
    assert told == (
        'Bearer error="insufficient_scope", '
        f'resource_metadata="https://tools.example.com{METADATA}/mcp", scope="tools.read"'
    )
    assert f'{METADATA}/mcp/reading"' in elsewhere.headers["www-authenticate"]
    assert nowhere.status_code == 404
    assert of_all == [404] * 3


async def test_who_shows_nothing_is_told_where_to_log_in(
    authority: Authority, tmp_path: Path
) -> None:
    async with open_to(authority.trusted(), tmp_path) as opened:
        async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as http:
            refused = await http.post(opened.url, json=HELLO)
            paths = (f"{METADATA}/mcp", METADATA, f"{METADATA}/mcp/any", f"{METADATA}/mcp/a/b")
            found = [await http.get(f"{opened.origin}{path}") for path in paths]
            foreign = await http.get(f"{opened.origin}{METADATA}", headers={"host": "evil.example"})

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == (
        f'Bearer resource_metadata="https://tools.example.com{METADATA}/mcp", '
        'scope="tools.read tools.all"'
    )
    assert [each.status_code for each in found] == [200, 200, 200, 404]
    assert found[0].json() == {
        "resource": AUDIENCE,
        "authorization_servers": [authority.issuer],
        "scopes_supported": ["tools.read", "tools.all"],
        "bearer_methods_supported": ["header"],
        "resource_name": "MCP tool aggregator",
    }
    assert found[1].json() == found[0].json()
    # Whether there is such a profile is nobody's business who has shown nothing.
    assert found[2].json()["resource"] == f"{AUDIENCE}/any"
    assert foreign.status_code == 421


async def test_without_an_issuer_nothing_is_said_of_one(tmp_path: Path) -> None:
    async with open_to(Http(), tmp_path) as opened:
        async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as http:
            found = await http.get(f"{opened.origin}{METADATA}/mcp")

    assert found.status_code == 404


@pytest.mark.parametrize("is_taken", [False, True])
async def test_our_own_token_is_taken_beside_an_issuer_only_where_the_file_says_so(
    authority: Authority, tmp_path: Path, *, is_taken: bool
) -> None:
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    named = ring.add("robot", "reading", None)
    http = authority.trusted(local_token=is_taken)
    async with open_to(http, tmp_path, keys=Keys(ring)) as opened:
        ours = await status(opened, opened.token)
        robot = await status(opened, named)

    assert ours.status_code == (200 if is_taken else 401)
    assert robot.status_code == 200


async def test_a_session_is_of_one_person_with_one_program(
    authority: Authority, tmp_path: Path
) -> None:
    async with open_to(authority.trusted(), tmp_path) as opened:
        async with client(authority.token()) as http:
            session = await begun(http, opened.url)
        others: dict[str, dict[str, Any]] = {
            "another token": {"jti": "2"},
            "another person": {"sub": "bert"},
            "another program": {"client_id": "robot"},
            "more rights": {"scope": "tools.all"},
        }
        found: dict[str, int] = {}
        for which, claims in others.items():
            async with client(authority.token(**claims)) as http:
                answer = await http.post(opened.url, json=request("ping"), headers=session)
                found[which] = answer.status_code

    assert found == {
        "another token": 200,
        "another person": 404,
        "another program": 404,
        "more rights": 404,
    }


async def test_keys_are_found_where_openid_has_them(tmp_path: Path) -> None:
    async with Authority(path="/realms/team", described_at=OPENID).served() as authority:
        async with open_to(authority.trusted(), tmp_path) as opened:
            answer = await status(opened, authority.token())

    assert answer.status_code == 200


async def test_a_key_that_is_new_is_asked_for_once(authority: Authority, tmp_path: Path) -> None:
    async with open_to(authority.trusted(), tmp_path) as opened:
        first = await status(opened, authority.token())
        authority.signers = [signer("ES256", "next")]
        unknown = [await status(opened, authority.token()) for _ in range(3)]

    assert first.status_code == 200
    # Keys have just been fetched: whoever shows another key cannot make us fetch them again.
    assert [each.status_code for each in unknown] == [401] * 3
    assert authority.fetched == 1


async def test_an_edit_of_the_file_holds_from_the_next_request_on(
    authority: Authority, tmp_path: Path
) -> None:
    async with open_to(Http(), tmp_path) as opened:
        fleet, token = opened.upstream.fleet, authority.token()

        def become(http: Http) -> None:
            made = replace(fleet.now.config.settings, http=http)
            fleet.reconfigure(replace(fleet.now.config, settings=made))

        found = [(await status(opened, each)).status_code for each in (opened.token, token)]
        become(authority.trusted())
        found += [(await status(opened, each)).status_code for each in (opened.token, token)]
        become(authority.trusted(EVERYTHING))
        found.append((await status(opened, token)).status_code)
        become(Http())
        found += [(await status(opened, each)).status_code for each in (opened.token, token)]

    assert found == [200, 401, 401, 200, 403, 200, 401]


@pytest.mark.parametrize("era", ERAS)
async def test_servers_with_the_login_of_a_person_are_for_that_person(
    era: Era, authority: Authority, tmp_path: Path
) -> None:
    ring = Ring(tmp_path / "tokens.json", "/etc/servers.yaml")
    named = ring.add("robot", None, None)
    servers = {name: connect_to(Peer("read")) for name in ("notes", "mine", "ours")}
    remote = {"type": "http", "url": "https://a.example/mcp"}
    options: dict[str, Any] = {"mine": remote, "ours": {**remote, "shared": True}}
    http = authority.trusted(EVERYTHING, local_token=True)
    async with door(servers, tmp_path, settings(http), keys=Keys(ring), **options) as opened:
        await ready(opened.upstream)
        tokens = opened.token, named, authority.token(scope="tools.all")
        found = [await seen(opened, token, era) for token in tokens]
        async with client(named) as one:
            told = await one.get(f"{opened.origin}/metrics")

    assert found == [
        ["notes__read", "mine__read", "ours__read"],
        ["notes__read", "ours__read"],
        ["notes__read", "ours__read"],
    ]
    assert told.status_code == 404


LISTEN = "subscriptions/listen"


async def test_who_listens_has_to_show_anew_who_it_is(authority: Authority, tmp_path: Path) -> None:
    """What it listens to ends with the token; the session goes on with the next."""
    ending = authority.token(exp=int(time.time()) - int(LEEWAY) + 3)
    async with open_to(authority.trusted(), tmp_path) as opened, client(ending) as http:
        session = await begun(http, opened.url)
        async with http.stream("GET", opened.url, headers=session) as stream:
            with anyio.fail_after(PATIENCE):
                async for _ in stream.aiter_bytes():
                    pass
        refused = await http.post(opened.url, json=request("ping"), headers=session)
        async with client(authority.token()) as again:
            answer = await again.post(opened.url, json=request("ping"), headers=session)

    assert stream.status_code == 200
    assert refused.status_code == 401
    assert answer.status_code == 200


async def test_who_listens_without_a_session_is_hung_up_on_when_the_file_says_something_else(
    authority: Authority, tmp_path: Path
) -> None:
    meta = {
        types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
        types.CLIENT_INFO_META_KEY: {"name": "one", "version": "1"},
        types.CLIENT_CAPABILITIES_META_KEY: {},
    }
    headers = {"mcp-protocol-version": LATEST_MODERN_VERSION, "mcp-method": LISTEN}
    asked = request(LISTEN, notifications={"toolsListChanged": True}, _meta=meta)
    async with open_to(authority.trusted(), tmp_path) as opened:
        fleet = opened.upstream.fleet
        async with client(authority.token()) as http:
            async with http.stream("POST", opened.url, json=asked, headers=headers) as stream:
                heard = stream.aiter_bytes()
                await anext(heard)
                made = replace(fleet.now.config.settings, http=authority.trusted(EVERYTHING))
                fleet.reconfigure(replace(fleet.now.config, settings=made))
                with anyio.fail_after(PATIENCE), suppress(httpx2.RemoteProtocolError):
                    async for _ in heard:
                        pass

    assert stream.status_code == 200


async def test_where_all_have_one_profile_rules_open_that_and_no_other(
    authority: Authority, tmp_path: Path
) -> None:
    rules = AccessRule(("tools.other",), "scope:tools.other"), *READS
    async with open_to(authority.trusted(*rules), tmp_path, profile="reading") as opened:
        reading = await seen(opened, authority.token())
        wide = await seen(opened, authority.token(scope="tools.all"))
        other = await status(opened, authority.token(scope="tools.other"))

    assert reading == wide == SOME
    assert other.status_code == 403
    assert 'scope="tools.read"' in other.headers["www-authenticate"]


@pytest.mark.parametrize("era", ERAS)
async def test_what_an_issuer_gave_is_shown_to_no_server_and_in_no_log(
    era: Era, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script, http = Scripted(), authority.trusted(EVERYTHING)
    good, bad = authority.token(scope="tools.all"), authority.token(aud="https://other.example")
    caplog.set_level("DEBUG", "aggregator")
    async with web(script) as origin:
        async with door({"web": at(f"{origin}/mcp")}, tmp_path, settings(http)) as opened:
            await ready(opened.upstream)
            headers = {"authorization": f"Bearer {good}"}
            async with (
                httpx2.AsyncClient(
                    headers=headers, timeout=PATIENCE, trust_env=False, verify=NO_CERTIFICATES
                ) as carrier,
                Client(
                    streamable_http_client(opened.url, http_client=carrier), mode=MODES[era]
                ) as one,
            ):
                await one.call_tool("web__go", {})
            refused = await status(opened, bad)

    sent = b"\n".join(value for each in script.requests for _, value in each["headers"])
    secrets = [part for token in (good, bad) for part in token.split(".")[1:]]
    assert script.calls == 1
    assert refused.status_code == 401
    assert [each for each in secrets if each.encode() in sent or each in caplog.text] == []
    assert "its token is for others" in caplog.text
