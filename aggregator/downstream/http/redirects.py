"""Where a redirect leads: to the same request on the same origin, or nowhere."""

from http import HTTPStatus

import httpx2

KEEPING_METHOD = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)
"""Redirects after which a request is what it was before."""
MAX_REDIRECTS = 5
"""Redirects within the origin that are followed for one request."""


def followed(request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | None:
    """Return what a response leads to, if that may be followed."""
    following = response.next_request or _led_on(request, response)
    return following if following is not None and _may_follow(request, following) else None


def is_same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether two places are on one server."""
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _led_on(request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | None:
    """Return the same request to the place that a redirect names."""
    if response.status_code not in KEEPING_METHOD or not response.has_redirect_location:
        return None
    url = request.url.join(response.headers["location"])
    return httpx2.Request(
        request.method, url, headers=_without_host(request.headers), content=request.content
    )


def _without_host(headers: httpx2.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "host"}


def _may_follow(request: httpx2.Request, following: httpx2.Request) -> bool:
    return (
        following.method == request.method
        and is_same_origin(request.url, following.url)
        and following.url.userinfo in (b"", request.url.userinfo)
    )
