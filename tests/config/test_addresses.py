"""What is wrong with an address is said in its own words, and an address is not quoted."""

from pathlib import Path

import pytest

from aggregator.config import parse_config
from aggregator.config.quantities import address_fault, is_http
from aggregator.errors import ConfigError


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
        "http://Bücher.example/",
        "http://127.0.0.1/",
        "http://1.2.3.4.5/",
    ],
)
def test_an_address_that_can_be_reached_has_no_fault(address: str) -> None:
    assert address_fault(address) is None
    assert is_http(address)


LETTERS = (
    "has a host that no host may be called; check how it is spelt, or write it in ASCII, as `xn--…`"
)
LONG = "\u00fc" * 64
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
        ("http://ex\u00e4mple..com/mcp", LETTERS),
        ("http://\u2603.example/mcp", LETTERS),
        ("http://-b\u00fccher-.example/mcp", LETTERS),
        (f"http://{LONG}.example/mcp", LETTERS),
        ("http://256.0.0.1/mcp", "has four numbers as its host that are no IPv4 address"),
        ("http://h:99999/mcp", PORT),
        ("http://h:0/mcp", PORT),
        ("http://h:-1/mcp", PORT),
        ("http://h:port/mcp", PORT),
    ],
)
def test_each_fault_of_an_address_has_its_own_words(text: str, fault: str) -> None:
    assert address_fault(text) == fault
    assert not is_http(text)


@pytest.mark.parametrize("host", ["\u2603.example", "256.0.0.1"])
def test_a_host_that_cannot_be_asked_for_is_an_error_of_its_server(host: str) -> None:
    text = f"servers:\n  board:\n    url: http://{host}/mcp\n"

    with pytest.raises(ConfigError, match=r"`servers\.board\.url` has ") as caught:
        parse_config(text, Path("servers.yaml"), {})

    assert caught.value.line == 3
