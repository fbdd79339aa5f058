"""Editing files that belong to people: what is meant changes, every other byte stays."""

import json
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aggregator.cli.clients.documents import JSON, TOML, YAML, Format, UneditableError

ENTRY = {"command": "aggregator", "args": ["serve", "--config", "/a b/servers.yaml"]}

RESTORED = [
    (JSON, '{"mcpServers": {}}', ("mcpServers",)),
    (JSON, '{\n\t"mcpServers": {\n\t\t"x": {} // c\n\t}\n}\n', ("mcpServers",)),
    (JSON, '{\n  "mcpServers": {\n    "x": {},\n  }, /* c */\n}\n', ("mcpServers",)),
    (JSON, '{"a": {"mcpServers": {"x": 1}}}', ("a", "mcpServers")),
    (JSON, '{\r\n  "mcpServers": {\r\n    "x": 1\r\n  }\r\n}\r\n', ("mcpServers",)),
    (YAML, "servers:\n  x:\n    command: y   # c\n\n# tail\n", ("servers",)),
    (YAML, "servers:\n  x: 1\n\n  y: 2\n\n#  z: 3\nother: 1\n", ("servers",)),
    (YAML, "a: 1\nservers: {}\n", ("servers",)),
    (YAML, "servers:\n    deep: {a: 1}\nlast: |\n  text\n", ("servers",)),
    (YAML, "servers:\r\n  x: 1 # c\r\n\r\n  y: 2\r\n", ("servers",)),
    (YAML, "servers:\n  x: 1\n\n  y: 2\n", ("servers",)),
    (YAML, "servers:\n  x:\n    a: 1\n    # b: 2\n  # about nothing\n", ("servers",)),
    (YAML, "servers: {x: {a: 1}, y: 2} # c\n", ("servers",)),
    (YAML, "servers: {\n  x: 1, # c\n}\n", ("servers",)),
    (YAML, "a:\n  servers:\n    x: 1\n  other: 2", ("a", "servers")),
    (TOML, "a = 1 # c\n[mcp_servers.x]\ncommand = 'y'\n\n[z]\nb = 2\n", ("mcp_servers",)),
    (TOML, "", ("mcp_servers",)),
]
"""Files that are the same again once an entry has come and gone."""


@pytest.mark.parametrize(("form", "text", "keys"), RESTORED)
def test_an_entry_comes_and_goes_without_a_trace(
    form: Format, text: str, keys: tuple[str, ...]
) -> None:
    added = form.put(text, (*keys, "toolbox"), ENTRY)

    assert form.drop(added, (*keys, "toolbox")) == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (JSON, ""),
        (JSON, "// nothing yet\n"),
        (JSON, "{}"),
        (JSON, '{"a": 1}'),
        (JSON, '{"s": {"toolbox": 1, "b": 2}}'),
        (YAML, ""),
        (YAML, "# nothing yet\n"),
        (YAML, "s:\n"),
        (YAML, "s:\n  # to come\nb: 1"),
        (YAML, "s: {a: {command: b}}\n"),
        (YAML, "s:\n  toolbox: 1\n  b: 2\n"),
        (YAML, "s:\n  toolbox: 1"),
        (YAML, "s: {a: 1 # c\n}\n"),
        (YAML, "s: {toolbox: 1, b: 2}\n"),
        (YAML, "s: &all\n  a: &a {b: 1}\n  c: {<<: *a, d: 2}\n"),
        (YAML, "s: {} # none yet\n"),
        (TOML, "[s]\n"),
        (TOML, "s = {a = 1}\n"),
        (TOML, "[s.toolbox]\na = 1\n[s.b]\n"),
    ],
)
def test_an_entry_finds_its_place_in_any_file(form: Format, text: str) -> None:
    before = form.read(text)

    after = form.read(form.put(text, ("s", "toolbox"), ENTRY))

    assert after == {**before, "s": {**(before.get("s") or {}), "toolbox": ENTRY}}


@pytest.mark.parametrize(
    "text",
    ["s:\n- name: a\n  b: 1\n", "s:\n  - name: a\n    b: 1\nz: 1\n", "s: []\n", "z: 1\n", "s:\n"],
)
def test_a_list_takes_an_entry_by_its_name(text: str) -> None:
    entry = {"name": "toolbox", **ENTRY}

    added = YAML.put(text, ("s", "toolbox"), entry, listed=True)
    replaced = YAML.put(added, ("s", "toolbox"), {**entry, "x": 1}, listed=True)

    assert YAML.read(added)["s"][-1] == entry
    assert [each["name"] for each in YAML.read(replaced)["s"]].count("toolbox") == 1
    assert "toolbox" not in YAML.drop(replaced, ("s", "toolbox"))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (JSON, '{"s": 3}'),
        (JSON, '{"s": [1'),
        (JSON, '{"a" 1}'),
        (JSON, '{"a": 1 "b": 2}'),
        (JSON, "{a: 1}"),
        (JSON, '{"a": ?}'),
        (JSON, "{} {}"),
        (JSON, "[]"),
        (YAML, "s: text\n"),
        (YAML, "- a\n"),
        (YAML, "a: [\n"),
        (TOML, "s = 3\n"),
        (TOML, "s =\n"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(form: Format, text: str) -> None:
    with pytest.raises(UneditableError):
        form.put(text, ("s", "toolbox"), ENTRY)


@pytest.mark.parametrize("form", [JSON, YAML, TOML])
def test_what_is_not_there_cannot_be_dropped(form: Format) -> None:
    with pytest.raises(UneditableError):
        form.drop("", ("s", "toolbox"))


@pytest.mark.parametrize("text", ["a: 1\n---\nb: 2\n", "s:\n\ttoolbox: 1\n", "s: &a [*a]\n"])
def test_a_file_that_is_broken_is_left_alone(text: str) -> None:
    with pytest.raises(UneditableError):
        YAML.drop(text, ("s", "toolbox"))
    with pytest.raises(UneditableError):
        YAML.put(text, ("s", "toolbox"), ENTRY)


def test_a_comment_stays_with_what_it_is_about() -> None:
    text = '{\n  "a": 1, // about a\n  // about b\n  "b": 2\n}\n'

    assert JSON.drop(text, ("a",)) == '{\n  // about a\n  // about b\n  "b": 2\n}\n'
    assert JSON.drop(text, ("b",)) == '{\n  "a": 1 // about a\n  // about b\n}\n'


SEVERAL = """\
# The servers.

servers:
  # About a,
  # at length.
  a: {command: x}   # first
  # About b.
  b:
    command: y
    # args: [z]

  # About c.
  'c': {command: z}

# The end.
"""


def test_a_comment_goes_with_the_entry_below_it_in_yaml() -> None:
    without_a = SEVERAL.replace("  # About a,\n  # at length.\n  a: {command: x}   # first\n", "")
    without_b = SEVERAL.replace("  # About b.\n  b:\n    command: y\n    # args: [z]\n", "")
    without_c = SEVERAL.replace("  # About c.\n  'c': {command: z}\n\n", "")

    assert YAML.drop(SEVERAL, ("servers", "a")) == without_a
    assert YAML.drop(SEVERAL, ("servers", "b")) == without_b
    assert YAML.drop(SEVERAL, ("servers", "c")) == without_c


def test_an_entry_is_replaced_where_it_stands() -> None:
    changed = YAML.put(SEVERAL, ("servers", "b"), {"command": "w"})

    assert changed == SEVERAL.replace("command: y\n    # args: [z]", "command: w")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("servers:\n  # About a.\n  a: 1\n", "servers: {}\n"),
        (
            "servers: # mine\n  a: 1\n  # more to come\nz: 1\n",
            "servers: {} # mine\n  # more to come\nz: 1\n",
        ),
        ("servers: {a: 1,} # c\n", "servers: {} # c\n"),
        ("servers:\n  a: 1", "servers: {}\n"),
    ],
)
def test_what_held_one_entry_is_empty_without_it(text: str, after: str) -> None:
    assert YAML.drop(text, ("servers", "a")) == after


@pytest.mark.parametrize("name", ["on", "null", "12", "1.5", "0x1F", "a-b"])
@pytest.mark.parametrize("text", ["servers:\n  a: 1\n", "servers: {a: 1}\n", ""])
def test_a_name_that_yaml_takes_for_something_else_stays_a_name(text: str, name: str) -> None:
    added = YAML.put(text, ("servers", name), ENTRY)

    assert list(YAML.read(added)["servers"])[-1] == name
    assert YAML.read(f"{name}: 1\n") == {name: 1}
    assert name not in (YAML.read(YAML.drop(added, ("servers", name)))["servers"] or {})


def test_what_others_refer_to_is_not_taken_away() -> None:
    with pytest.raises(UneditableError):
        YAML.drop("servers:\n  a: &a {command: x}\n  b: *a\n", ("servers", "a"))


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
keys = st.from_regex(r"[a-z][a-z0-9_-]{0,6}", fullmatch=True).filter(lambda key: key != "null")
entries = st.dictionaries(keys, st.one_of(words, st.booleans(), st.lists(words, max_size=3)))
files = st.dictionaries(keys, st.dictionaries(keys, entries, max_size=3), max_size=3)


@pytest.mark.no_cover
@given(tree=files, section=keys, name=keys, entry=entries)
def test_json_reads_as_meant_after_any_edit(
    tree: dict[str, object], section: str, name: str, entry: dict[str, object]
) -> None:
    for indent in (None, 2, "\t"):
        text = json.dumps(tree, indent=indent, ensure_ascii=False)
        added = JSON.put(text, (section, name), entry)
        assert json.loads(added)[section][name] == entry
        assert name not in JSON.read(JSON.drop(added, (section, name)))[section]


@pytest.mark.no_cover
@given(tree=files, section=keys, name=keys, entry=entries)
def test_yaml_reads_as_meant_after_any_edit(
    tree: dict[str, object], section: str, name: str, entry: dict[str, object]
) -> None:
    for flow in (False, None):
        text = yaml.safe_dump(tree, default_flow_style=flow, allow_unicode=True)
        added = YAML.put(text, (section, name), entry)
        assert yaml.safe_load(added)[section][name] == entry
        assert name not in YAML.read(YAML.drop(added, (section, name)))[section]


@given(section=keys, name=keys, entry=entries)
def test_toml_reads_as_meant_after_any_edit(
    section: str, name: str, entry: dict[str, object]
) -> None:
    added = TOML.put("a-first = 1 # c\n", (section, name), entry)

    assert tomllib.loads(added)[section][name] == entry
    assert TOML.drop(added, (section, name)).startswith("a-first = 1 # c\n")
