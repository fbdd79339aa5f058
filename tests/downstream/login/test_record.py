"""A login as a value, and what a token endpoint may answer."""

import json

import pytest

from aggregator.downstream.login.challenge import challenge
from aggregator.downstream.login.record import Client, Tokens, as_text, from_text, with_tokens
from aggregator.downstream.login.renewal import (
    Outcome,
    Refused,
    Reply,
    Unavailable,
    outcome,
    renewal,
    revocation,
)
from tests.downstream.login.logins import login


def test_what_is_kept_is_what_was_given() -> None:
    kept = login(client=Client("a", "s", "client_secret_post", ("http://127.0.0.1:1/callback",)))

    assert from_text(as_text(kept)) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"client": {}}',
        as_text(login()).replace('"access-1"', "7"),
        as_text(login()).replace("3600.0", '"soon"'),
        as_text(login(obtained_at=0)).replace('"obtained_at"', '"other"'),
    ],
)
def test_half_a_login_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        from_text(text)


def test_what_a_newer_version_keeps_besides_is_no_hindrance() -> None:
    data = json.loads(as_text(login()))

    assert from_text(json.dumps({**data, "colour": "blue"})) == login()


def test_no_secret_is_in_how_a_login_is_shown() -> None:
    kept = login(client=Client("a-client", "the-secret"))

    shown = repr((kept, kept.client, renewal(kept), Tokens("access-2"), Reply(200, b"access-3")))

    assert not any(each in shown for each in ("access-", "refresh-", "the-secret"))


@pytest.mark.parametrize(("lifetime", "due"), [(3600.0, 3570.0), (60.0, 54.0), (2.0, 1.8)])
def test_a_token_is_due_a_moment_before_its_end(lifetime: float, due: float) -> None:
    kept = login(expires_at=lifetime)

    assert (kept.is_due(due - 0.01), kept.is_due(due)) == (False, True)
    assert kept.is_valid(due)
    assert not kept.is_valid(lifetime)


def test_a_token_without_an_end_is_never_due() -> None:
    assert not login(expires_at=None).is_due(1e12)


def test_a_renewal_keeps_what_it_does_not_say_anew() -> None:
    renewed = with_tokens(login(lost="invalid_grant"), Tokens("access-2", 60.0), 100.0)

    assert renewed == login(access_token="access-2", obtained_at=100.0, expires_at=160.0)  # noqa: S106


TOKEN = {"access_token": "t", "token_type": "bearer"}


@pytest.mark.parametrize(
    ("status", "body", "means"),
    [
        (200, TOKEN, Tokens("t")),
        (200, {**TOKEN, "expires_in": "60", "scope": "a b"}, Tokens("t", 60.0, scope="a b")),
        (200, {**TOKEN, "expires_in": 0, "refresh_token": ""}, Tokens("t")),
        (200, {**TOKEN, "expires_in": True}, Tokens("t")),
        (200, {**TOKEN, "expires_in": 1e300}, Tokens("t", 10 * 365 * 86400.0)),
        (200, {"access_token": "t\nx"}, Unavailable("its answer holds no token")),
        (200, {**TOKEN, "token_type": "mac"}, Unavailable("its answer holds no token")),
        (200, "<html>", Unavailable("its answer holds no token")),
        (200, [], Unavailable("its answer holds no token")),
        (400, {"error": "invalid_grant"}, Refused("invalid_grant")),
        (
            401,
            {"error": "invalid_client", "error_description": "a\nb"},
            Refused("invalid_client", "a b"),
        ),
        (400, {"error": "temporarily_unavailable"}, Unavailable("it answered 400")),
        (403, "<html>", Unavailable("it answered 403")),
        (429, {"error": "invalid_grant"}, Unavailable("it answered 429")),
        (503, {"error": "invalid_grant"}, Unavailable("it answered 503")),
        (302, "", Unavailable("it answered 302")),
    ],
)
def test_what_a_token_endpoint_says(status: int, body: object, means: Outcome) -> None:
    text = body if isinstance(body, str) else json.dumps(body)

    assert outcome(Reply(status, text.encode())) == means


@pytest.mark.parametrize(
    ("method", "header", "secret"),
    [
        ("client_secret_basic", "Basic Y2xpJTNBZW50OnMlMjA=", None),
        ("client_secret_post", None, "s "),
        ("none", None, None),
    ],
)
def test_a_client_proves_itself_as_agreed(
    method: str, header: str | None, secret: str | None
) -> None:
    ask = renewal(login(client=Client("cli:ent", "s ", method), resource="https://r/"))

    assert ask.headers.get("authorization") == header
    assert ask.form.get("client_secret") == secret
    assert ask.form["resource"] == "https://r/"


def test_only_what_can_be_revoked_is() -> None:
    assert revocation(login(), "t", "refresh_token") is None
    ask = revocation(login(revocation_endpoint="https://auth/revoke"), "t", "refresh_token")
    assert ask is not None
    assert (ask.url, ask.form["token"]) == ("https://auth/revoke", "t")


@pytest.mark.parametrize(
    ("header", "bearer", "error", "scope"),
    [
        ("", False, "", ""),
        ('Basic realm="x"', False, "", ""),
        ("Bearer", True, "", ""),
        ('Bearer error="insufficient_scope", scope="a b"', True, "insufficient_scope", "a b"),
        ("bearer scope=a, error=insufficient_scope", True, "insufficient_scope", "a"),
        ('Bearer scope="a`rm`\\" b"', True, "", ""),
        ('Bearer scope="one", scope="two"', True, "", "one"),
        (f"Bearer {'x' * 8_000} scope=a", True, "", "a"),
        (f"Bearer {'x' * 100}scope=a", True, "", ""),
        (f"Bearer {'x' * 9_000} scope=a", True, "", ""),
    ],
)
def test_what_a_challenge_asks_for(header: str, bearer: bool, error: str, scope: str) -> None:
    said = challenge({"www-authenticate": header})

    assert (said.is_bearer, said.error, said.scope) == (bearer, error, scope)
