"""The files of the page: for everybody, for nobody else's pages, and from nowhere else."""

import re
from importlib import resources
from pathlib import Path

import httpx2
import pytest

from tests.loopback.door import NO_CERTIFICATES, Open, door

pytestmark = pytest.mark.anyio

STATIC = Path(str(resources.files("aggregator.upstream.http.page") / "static"))
SOURCES = sorted(path for path in STATIC.rglob("*") if path.is_file())
TO_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|createContextual"
    r"|DOMParser|srcdoc|setAttribute\(\s*[\"']on|javascript:"
)
ELSEWHERE = re.compile(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", re.IGNORECASE)
NAMESPACE = "http://www.w3.org/2000/svg"


async def get(site: Open, path: str, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, verify=NO_CERTIFICATES) as http:
        return await http.get(f"{site.origin}{path}", headers=headers)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_file_makes_markup_of_text_or_asks_anybody_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert TO_MARKUP.findall(text) == []
    assert ELSEWHERE.findall(text.replace(NAMESPACE, "")) == []


async def test_every_file_needs_no_token_and_says_what_a_browser_may_do_with_it(
    tmp_path: Path,
) -> None:
    async with door({}, tmp_path) as site:
        page = await get(site, "/")
        others = {
            path: await get(site, f"/page/{path.relative_to(STATIC).as_posix()}")
            for path in SOURCES
            if path.name != "index.html"
        }

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for path, answer in [(STATIC / "index.html", page), *others.items()]:
        assert answer.status_code == 200, path
        assert answer.content == path.read_bytes()
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "'unsafe" not in policy
        for part in ("connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
            assert part in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


async def test_a_file_that_the_browser_has_is_not_sent_again(tmp_path: Path) -> None:
    async with door({}, tmp_path) as site:
        first = await get(site, "/page/main.js")
        again = await get(site, "/page/main.js", **{"if-none-match": first.headers["etag"]})
        other = await get(site, "/page/main.js", **{"if-none-match": '"another"'})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert other.status_code == 200


@pytest.mark.parametrize("path", ["/activity", "/stats", "/metrics", "/mcp"])
async def test_all_that_says_something_needs_the_token(path: str, tmp_path: Path) -> None:
    async with door({}, tmp_path) as site:
        answer = await get(site, path)

    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/page/", "/page/../files.py", "/page/%2e%2e/files.py"])
async def test_nothing_but_its_files_is_below_the_page(path: str, tmp_path: Path) -> None:
    async with door({}, tmp_path) as site:
        answer = await get(site, path, **site.credentials)

    assert answer.status_code == 404


async def test_the_page_is_for_no_other_page(tmp_path: Path) -> None:
    async with door({}, tmp_path) as site:
        framed = await get(site, "/", **{"sec-fetch-site": "cross-site"})
        asked = await get(site, "/page/main.js", origin="https://example.com")

    assert (framed.status_code, asked.status_code) == (403, 403)
