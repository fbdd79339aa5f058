"""Every file that cannot be used gets one readable error that points at the place."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from aggregator.config import load_config, parse_config
from aggregator.entry.place import user_config
from aggregator.errors import ConfigError
from tests.work import TURN_BOUND, counting

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{at}: &a{at} [*a{at - 1}]\n" for at in range(1, 100))

WHOLE_FILES: list[tuple[str, str, int | None, str]] = [
    # name, text, line, and what the message and, after the bar, its hint must contain
    ("empty", "", None, "is empty|Begin with `servers:`"),
    ("only comments", "# nothing\n", None, "is empty"),
    ("null document", "---\n~\n", None, "is empty"),
    (
        "TOML",
        '[servers.a]\ncommand = "x"\n',
        2,
        "there is more after the end of what it says|Is it TOML?",
    ),
    ("a list", "- notes\n", 1, "must be a mapping with the key `servers`"),
    ("plain text", "hello\n", 1, "must be a mapping"),
    ("no servers", "toolSearch: auto\n", 1, "has no `servers`"),
    ("misspelled section", "server:\n  a: {command: x}\n", 1, "`server` is not|`servers`?"),
    ("unknown top key", "surfaces: x\nservers: {}\n", 1, "`surfaces` is not a|`surface`?"),
    ("two documents", "servers: {}\n---\nservers: {}\n", 2, "more than one document|`---`"),
    ("servers is a list", "servers:\n  - notes\n", 1, "`servers` must be a mapping"),
    ("servers is text", "servers: notes\n", 1, "`servers` must be a mapping"),
    ("server is text", "servers:\n  a: x\n", 2, "`servers.a` must be a mapping"),
    ("server is empty", "servers:\n  a:\n", 2, "`a` has neither `command` nor `url`|over HTTP"),
    ("command and url", "servers:\n  a: {command: x, url: 'http://h'}\n", 2, "`a` has both"),
    ("unknown key", "servers:\n  a:\n    comand: x\n", 3, "`servers.a.comand` is not|`command`?"),
    ("snake case", "servers:\n  a:\n    always_load: x\n", 3, "is not a known key|`alwaysLoad`?"),
    ("unknown empty key", "servers:\n  a:\n    comand:\n", 3, "`servers.a.comand` is|`command`?"),
    ("unknown empty top key", "surfce:\nservers: {}\n", 1, "`surfce` is not|`surface`?"),
    ("unknown key far off", "servers:\n  a:\n    zzz: 1\n    command: x\n", 3, "`servers.a.zzz`"),
    (
        "unknown key of tools",
        "servers:\n  a:\n    command: x\n    tools:\n      denied: [x]\n",
        5,
        "`servers.a.tools.denied` is not a known key|`deny`?",
    ),
    (
        "duplicate server",
        "servers:\n  a: {}\n  b: {}\n  a: {}\n",
        4,
        "`servers.a` is defined twice, first on line 2",
    ),
    (
        "duplicate key",
        "servers:\n  a:\n    command: x\n    command: y\n",
        4,
        "`servers.a.command` is",
    ),
    (
        "name with a space",
        "servers:\n  my notes: {command: x}\n",
        2,
        "`my notes` is not allowed|letters",
    ),
    ("name too long", f"servers:\n  {'n' * 65}: {{command: x}}\n", 2, "is not allowed as a name"),
    ("name of dashes", "servers:\n  ---a: {command: x}\n", 2, "`---a` is not allowed as a name"),
    (
        "bad indentation",
        "servers:\n  a:\n    command: x\n   args: [y]\n",
        4,
        "this line is not indented as those above",
    ),
    ("tab", "servers:\n\ta: x\n", 2, "a tab is used for indentation|spaces"),
    ("old line ends", "servers:\r  a: {", 2, "is not valid YAML"),
    (
        "unclosed list",
        "servers:\n  a: {args: [x, y}\n",
        2,
        "is not valid YAML: a `,` or `]` is missing",
    ),
    (
        "unclosed quote",
        'servers:\n  a: {command: "x}\n  b: {}\n',
        2,
        "is not valid YAML: a quotation mark is never closed",
    ),
    ("colon in text", "servers:\n  a: b: c\n", 2, "there is a second colon|quotes"),
    (
        "keys of one server indented differently",
        "servers:\n  a:\n   command: x\n    args: [y]\n",
        4,
        "indented further than the one above|quotes",
    ),
    ("bare asterisk", "servers:\n  a: {command: x, args: [*.py]}\n", 2, "is not valid YAML|quotes"),
    ("bare at sign", "servers:\n  a: {command: @x}\n", 2, "begins with `@`|quotes"),
    ("variable in braces", "servers:\n  a: {command: ${X}}\n", 2, "is not valid YAML|quotes"),
    (
        "unclosed variable",
        "servers:\n  a:\n    command: ${X\n",
        3,
        "`servers.a.command` has a `${`|`$${`",
    ),
    ("bad variable", "servers:\n  a:\n    command: ${a b}\n", 3, "`servers.a.command` has a `${`"),
    ("bad variable above", "surface: ${}\nservers: {}\n", 1, "`surface` has a `${`"),
    (
        "missing variable above",
        "servers: {}\nmaxLoaded: ${X}\n",
        2,
        "the variable `X`, which is not set|default",
    ),
    ("control character", "servers:\n  a: \x01\n", 2, "the control character U+0001"),
    ("NUL", "servers:\n  a: \x00\n", 2, "the control character U+0000"),
    ("escaped NUL", 'servers:\n  a: {command: "x\\0"}\n', 2, "contains a NUL character"),
    ("half a character", '{"servers":\n {"a": {"command": "\\ud83d"}}}', 2, "half of a character"),
    ("Python tag", "servers: !!python/object/apply:os.system [x]\n", 1, "tags are not supported"),
    ("own tag", "servers:\n  a: !env X\n", 2, "tags are not supported"),
    ("list as a key", "servers:\n  ? [a]\n  : {}\n", 2, "a key that is not plain text"),
    ("empty name", "servers:\n  '': {command: x}\n", 2, "a server has no name|letters"),
    ("empty name of theirs", "mcpServers:\n  '': {command: x}\n", 2, "is not allowed as a name"),
    ("empty top key", "'': x\nservers: {}\n", 1, "`` is not a known key"),
    (
        "header without a name",
        "servers:\n  a: {url: 'http://h', headers: {'': x}}\n",
        2,
        "has a name that no header can have",
    ),
    (
        "address beside a header that cannot be sent",
        'servers:\n  a: {url: "http://[::1", headers: {X: "\\n"}}\n',
        2,
        "has a `[` or a `]` without the other",
    ),
    ("unknown alias", "servers:\n  a: *missing\n", 2, "`*missing`, which is not defined above"),
    ("recursive alias", "servers: &s\n  a: *s\n", 2, "`*s`, which is not defined above"),
    ("merge of text", "servers:\n  a:\n    <<: x\n", 3, "`<<` needs a mapping"),
    ("alias bomb", BOMB, 5, "holds more than 50,000 values"),
    ("chain of aliases", CHAIN, 32, "nested more than 32 levels deep"),
    ("deep list", "servers: " + "[" * 100_000, 1, "nested more than 32 levels deep"),
    ("deep mapping", "".join(f"{' ' * at}a:\n" for at in range(40)), 33, "nested more than 32"),
    ("too many values", f"servers: [{'x,' * 60_000}]\n", 1, "holds more than 50,000 values"),
    (
        "env without value",
        "servers:\n  a:\n    command: x\n    env:\n      A:\n",
        5,
        "`servers.a.env.A` must be text|`A: ${A}`",
    ),
    (
        "type of an address",
        "servers:\n  a:\n    url: http://h\n    type: stdio\n",
        4,
        "must be `http` or `sse`",
    ),
    (
        "not an address",
        "servers:\n  a:\n    url: ftp://h\n",
        3,
        "must begin with http:// or https://",
    ),
    (
        "port of an address",
        "servers:\n  a:\n    url: http://h:99999/mcp\n",
        3,
        "`servers.a.url` must have a number from 1 to 65535 as its port",
    ),
    (
        "port of a proxy",
        "servers:\n  a:\n    url: http://h\n    proxy: http://h:99999\n",
        4,
        "`servers.a.proxy` must have a number from 1 to 65535 as its port",
    ),
    (
        "proxy",
        "servers:\n  a:\n    url: http://h\n    proxy: h:3128\n",
        4,
        "`servers.a.proxy` must begin with http://, https://, socks5:// or socks5h://",
    ),
    (
        "port of a login",
        "servers:\n  a:\n    url: http://h\n    oauth: {issuer: 'https://h:0'}\n",
        4,
        "`servers.a.oauth.issuer` must have a number from 1 to 65535 as its port",
    ),
    (
        "what a login is for",
        "servers:\n  a:\n    url: http://h\n    oauth: {resource: 'https://'}\n",
        4,
        "`servers.a.oauth.resource` must be an address or `false`; it names no host",
    ),
    (
        "args of an address",
        "servers:\n  a:\n    url: http://h\n    args: [x]\n",
        4,
        "`servers.a.args` has no meaning beside `url`",
    ),
    ("empty command", "servers:\n  a:\n    command: ' '\n", 3, "`servers.a.command` is empty"),
    (
        "command line",
        "servers:\n  a:\n    command: npx -y x\n",
        3,
        "must be the program alone|`command: npx`",
    ),
    (
        "command line with a slash",
        "servers:\n  a:\n    command: npx -y @scope/x\n",
        3,
        "must be the program alone|`command: npx`",
    ),
    (
        "command line with a script",
        "servers:\n  a:\n    command: node ./build/x.js\n",
        3,
        "must be the program alone|`command: node`",
    ),
    (
        "prefix twice",
        "servers:\n  a: {command: x, prefix: p}\n  b: {command: x, prefix: p}\n",
        3,
        "is used twice",
    ),
    (
        "prefix of another's name",
        "servers:\n  a: {command: x, prefix: GitHub}\n  github: {command: x}\n",
        2,
        "`servers.a.prefix` is the name of the server `github`",
    ),
    (
        "toolSearch",
        "servers: {}\ntoolSearch: auto:101\n",
        2,
        "`toolSearch` must be `true`, `false`, `auto`",
    ),
    ("surface", "servers: {}\nsurface: realy\n", 2, "must be one of `auto`, `promote`|`relay`?"),
    (
        "client's surface",
        "servers: {}\nclients:\n  zed: fll\n",
        3,
        "`clients.zed` must be one of|`full`?",
    ),
    ("number too small", "servers: {}\nmaxResults: 0\n", 2, "`maxResults` must be greater"),
    (
        "in both sections",
        "servers:\n  a: {command: x}\nmcpServers:\n  a: {command: x}\n",
        4,
        "both `servers` and `mcpServers`",
    ),
    ("client's name", 'mcpServers:\n  "a\\nb": {command: x}\n', 2, "is not allowed as a name"),
    ("client's list", "mcpServers: x\n", 1, "`mcpServers` must be a mapping"),
    ("client's server", "mcpServers:\n  a: [x]\n", 2, "`mcpServers.a` must be a mapping"),
]

KEYS_OF_A_PROGRAM = [
    # name, what stands beside `command` on line 4, and what must be said of it
    (
        "unknown key waiting for a variable",
        "urll: ${X}",
        "`servers.a.urll` is not a known key|`url`?",
    ),
    ("args is a mapping", "args: {x: y}", "`servers.a.args` must be a list"),
    ("an argument is a list", "args: [[y]]", "`servers.a.args[0]` must be text"),
    ("env is a list", "env: [A=b]", "`servers.a.env` must be a mapping"),
    ("env name", "env: {A=B: c}", "`servers.a.env` has a name"),
    ("enabled", "enabled: maybe", "must be `true` or `false`"),
    ("enabled is a list", "enabled: []", "must be `true` or `false`"),
    ("duration", "callTimeout: 3 weeks", "must be a duration such as `30s`"),
    ("no duration", "callTimeout: 0", "more than nothing"),
    ("size", "maxMessageBytes: big", "must be a size such as `16MiB`"),
    ("tiny size", "maxMessageBytes: 1", "at least 1 KiB"),
    ("count", "maxInFlight: few", "must be a whole number"),
    ("limit of memory", "limits: {memory: 1MiB}", "must be at least 16 MiB"),
    ("limit of files", "limits: {files: 3}", "must be greater than or equal to 16"),
    ("count of none", "maxInFlight: 0", "must be greater than or equal to 1"),
    ("type", "type: studio", "must be one of `stdio`|`stdio`?"),
    ("type of a program", "type: sse", "its `type` must be `stdio`"),
    ("headers of a program", "headers: {A: b}", "no meaning beside `command`"),
    ("alwaysLoad", "alwaysLoad: {a: b}", "must be `true`, or a list"),
    ("alwaysLoad", "alwaysLoad: 7", "must be `true`, or a list of names or globs, and not a"),
    ("alwaysLoad", "alwaysLoad: yes please", "must be `true`, or a list of names or globs, such"),
    ("tools.allow", "tools: {allow: 5}", "must be a list of names or globs, and not a number"),
    ("tools.deny", "tools: {deny: 1.5}", "must be a list of names or globs, and not a number"),
    ("tools.allow", "tools: {allow: a b}", "must be a list of names or globs, such as `[get_note"),
    ("hints", "searchHints: words", "`servers.a.searchHints` must be a mapping"),
    ("tools is a list", "tools: [x]", "`servers.a.tools` must be a mapping"),
    ("prefix", "prefix: my-x__", "single underscores|`my_x`"),
]

MALFORMED = WHOLE_FILES + [
    (name, f"servers:\n  a:\n    command: x\n    {key}\n", 4, said)
    for name, key, said in KEYS_OF_A_PROGRAM
]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [pytest.param(*row, id=name) for name, *row in MALFORMED],
)
def test_a_malformed_file_is_refused_with_its_place_and_reason(
    text: str, line: int | None, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path, {})

    problem, _, hint = said.partition("|")
    assert problem in str(caught.value)
    assert hint in (caught.value.hint or "")
    assert caught.value.line == line
    assert caught.value.path == str(path)
    assert "\n" not in str(caught.value)


def test_an_alias_bomb_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text(BOMB, encoding="utf-8")
    with counting() as tally, pytest.raises(ConfigError):
        load_config(path, {})
    assert tally.calls < TURN_BOUND


def problem_of(path: Path, environ: Mapping[str, str] = MappingProxyType({})) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ)
    return caught.value


@pytest.mark.parametrize("text", ["", "{}", "[]", "// nothing yet"])
def test_a_file_of_json_without_servers_is_told_how_json_begins(tmp_path: Path, text: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text, encoding="utf-8")

    assert (problem_of(path).hint or "").startswith('Begin with `{"mcpServers": {`')


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    problem = problem_of(path)
    assert str(problem) == f"`{path}` does not exist"
    assert problem.hint is not None
    assert problem.hint.startswith(f"`aggregator init --config {path}` makes one for you; ")


def test_of_a_file_that_init_makes_by_itself_nobody_has_to_type_the_path(tmp_path: Path) -> None:
    own, mine = {"HOME": str(tmp_path)}, {"HOME": str(tmp_path), "AGGREGATOR_CONFIG": "mine.yaml"}
    path = Path(user_config(own) or "")

    problem, other = problem_of(path, own), problem_of(path, mine)

    assert (problem.hint or "").startswith("`aggregator init` makes one for you; ")
    assert (other.hint or "").startswith(f"`aggregator init --config {shlex.quote(str(path))}`")


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    assert str(problem_of(tmp_path)) == f"`{tmp_path}` is a directory"


def test_a_path_through_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert "cannot be read: not a directory" in str(problem_of(tmp_path / "file" / "servers.yaml"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text("servers: {}", encoding="utf-8")
    path.chmod(0)
    assert "cannot be read: permission denied" in str(problem_of(path))


def test_a_path_with_a_null_character_is_not_a_path() -> None:
    assert "is not a path" in str(problem_of(Path("a\0b")))


def test_a_file_of_two_megabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text("# x\n" * 500_000, encoding="utf-8")
    assert "is larger than 1 MiB" in str(problem_of(path))


def test_a_text_of_two_megabytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is larger than 1 MiB"):
        parse_config("# x\n" * 500_000, tmp_path / "servers.yaml", {})


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_bytes(b"servers:\n  a: {command: caf\xe9}\n")
    problem = problem_of(path)
    assert "is not UTF-8 text" in str(problem)
    assert problem.line == 2


def test_values_are_never_quoted_in_an_error(tmp_path: Path) -> None:
    """They may come from a variable that holds a secret."""
    path = tmp_path / "servers.yaml"
    path.write_text(
        "servers:\n  a:\n    command: x\n    env: ${S}\n    maxQueued: ${S}\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError) as caught:
        load_config(path, {"S": "canary"})
    assert "canary" not in f"{caught.value!r}{caught.value.hint}"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_all_mistakes_of_a_file_are_told_in_its_order(tmp_path: Path) -> None:
    text = """\
servers:
  a:
    comand: x
    maxQueued: many
  my notes: {command: x}
  b: {command: x, url: "http://h"}
  c: {command: x}
toolSearch: perhaps
maxResults: 0
"""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, tmp_path / "servers.yaml", {})

    first = caught.value
    assert [each.line for each in (first, *first.others)] == [3, 4, 5, 6, 8, 9]
    assert "`servers.a.comand` is not a known key" in str(first)
    assert first.hint == "Did you mean `command`?"
    assert "`maxResults` must be" in str(first.others[-1])


def test_a_server_without_a_name_does_not_hide_what_else_is_wrong() -> None:
    text = "servers:\n  '': {command: x}\n  a: {comand: x}\nsurfce: auto\n"

    with pytest.raises(ConfigError, match="a server has no name") as raised:
        parse_config(text, Path("servers.yaml"), {})

    told = [raised.value, *raised.value.others]
    assert sorted(each.line or 0 for each in told) == [2, 3, 4]
