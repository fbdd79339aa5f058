"""The cookies of one server, as far as they are kept."""

from http.cookiejar import Cookie, CookieJar

MAX_COOKIES = 64
"""Cookies that are kept of one server: gateways that route by some need one or two."""


class FewCookies(CookieJar):
    """Cookies of a server, which are looked through for each request to it."""

    were_set = False
    """Whether there was ever one: to count none takes longer than to know."""

    def set_cookie(self, cookie: Cookie) -> None:
        """Keep one; who sets too many loses those before it."""
        if len(self) >= MAX_COOKIES:
            self.clear()
        self.were_set = True
        super().set_cookie(cookie)
