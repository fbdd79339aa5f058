"""What is wrong with an address is said in its own words, and an address is not quoted."""

import pytest

from aggregator.config.quantities import address_fault, is_http


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:8080/mcp",
        "HTTPS://h/x",
        "http://h:/x",
        "http://[::1]:8080/mcp",
        "https://me:p%40ss@h/x?key=1#y",
        "http://h:65535",
        "http://ü.example/",
    ],
)
def test_an_address_that_can_be_reached_has_no_fault(address: str) -> None:
    assert address_fault(address) is None
    assert is_http(address)


PORT = "must have a number from 1 to 65535 as its port"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "must begin with http:// or https://"),
        ("localhost:8080", "must begin with http:// or https://"),
        ("ftp://h", "must begin with http:// or https://"),
        ("http:/h", "must begin with http:// or https://"),
        ("http://", "names no host"),
        ("http:///mcp", "names no host"),
        ("http://:80/mcp", "names no host"),
        ("http://exa mple.com/x", "has a space in it"),
        (" http://h", "has a space in it"),
        ("http://h/\n", "has a space in it"),
        ("http://h/\x7f", "has a control character in it"),
        ("http://[::1/mcp", "has a `[` or a `]` without the other"),
        ("http://::1]/mcp", "has a `[` or a `]` without the other"),
        ("http://[home]/", "has something else than an IPv6 address in `[ ]`"),
        ("http://\u2100.com/", "has a character in its host that no host may have"),
        ("http://h:99999/mcp", PORT),
        ("http://h:0/mcp", PORT),
        ("http://h:-1/mcp", PORT),
        ("http://h:port/mcp", PORT),
    ],
)
def test_each_fault_of_an_address_has_its_own_words(text: str, fault: str) -> None:
    assert address_fault(text) == fault
    assert not is_http(text)
