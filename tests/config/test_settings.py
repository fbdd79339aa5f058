"""What holds for all servers and clients."""

from pathlib import Path

import pytest

from aggregator.config import Settings, ToolSearchMode, load_config
from aggregator.config.tokens import TokenCounter, Tokenizer
from tests.config.reading import config_of, refusal


def test_a_file_that_says_nothing_gets_the_defaults() -> None:
    settings = config_of("servers: {a: {command: x}}").settings
    assert settings == Settings()
    assert settings == Settings(
        tool_search=ToolSearchMode(0),
        context_window=200_000,
        surface="auto",
        max_results=8,
        max_result_chars=8_000,
        max_loaded=40,
        relist_wait=0.4,
        state=True,
        watch=True,
        clients={},
    )


def test_every_setting_reaches_its_value() -> None:
    text = """
servers: {}
toolSearch: auto:25
contextWindow: 1_000_000
surface: ${SURFACE:-hybrid}
maxResults: 7
maxResultChars: 4000
maxLoaded: 10
relistWait: 250ms
state: off
watch: false
clients: {claude-code: relay, Zed: promote}
"""
    assert config_of(text).settings == Settings(
        tool_search=ToolSearchMode(25),
        context_window=1_000_000,
        surface="hybrid",
        max_results=7,
        max_result_chars=4_000,
        max_loaded=10,
        relist_wait=0.25,
        state=False,
        watch=False,
        clients={"claude-code": "relay", "Zed": "promote"},
    )


@pytest.mark.parametrize(
    ("written", "percent", "shown"),
    [
        ("true", 0, "true"),
        ("on", 0, "true"),
        ("auto:0", 0, "true"),
        ("auto", 10, "auto:10"),
        ("auto:7", 7, "auto:7"),
        (" AUTO:99 ", 99, "auto:99"),
        ("auto:100", 100, "false"),
        ("false", 100, "false"),
        ("off", 100, "false"),
    ],
)
def test_the_modes_are_one_percentage(written: str, percent: int, shown: str) -> None:
    mode = ToolSearchMode.parse(written)
    assert (mode.percent, str(mode)) == (percent, shown)


@pytest.mark.parametrize("written", ["", "maybe", "auto:", "auto:x", "auto:101", "auto:-1", "10"])
def test_other_modes_are_refused(written: str) -> None:
    with pytest.raises(ValueError, match=f"^{written}$"):
        ToolSearchMode.parse(written)


def test_the_environment_overrides_the_mode() -> None:
    text = "toolSearch: true\nservers: {}"
    assert config_of(text, AGGREGATOR_TOOL_SEARCH="false").settings.tool_search.never
    assert config_of(text, AGGREGATOR_TOOL_SEARCH="").settings.tool_search.always


def test_a_wrong_mode_in_the_environment_is_said_to_be_there() -> None:
    problem = refusal("servers: {}", AGGREGATOR_TOOL_SEARCH="sometimes")
    assert str(problem).startswith("`AGGREGATOR_TOOL_SEARCH`: must be `true`, `false`")


def test_a_client_has_a_surface_or_keys_of_its_own() -> None:
    text = """
servers: {}
maxResultTokens: 10_000
clients: {codex: relay, zed: {maxResultTokens: 5000}, cline: {surface: full, maxResultTokens: off}}
"""
    settings = config_of(text).settings

    assert settings.max_result_tokens == 10_000
    assert settings.clients == {"codex": "relay", "cline": "full"}
    assert settings.result_limits == {"zed": 5_000, "cline": 0}


@pytest.mark.parametrize("written", ["999", "1_000_001", "true", "-5", "many", "[1]"])
def test_a_limit_that_is_none_is_refused(written: str) -> None:
    said = str(refusal(f"servers: {{}}\nclients: {{zed: {{maxResultTokens: {written}}}}}"))

    assert (
        "`clients.zed.maxResultTokens` must be a number of tokens from 1,000 to 1,000,000" in said
    )


def test_an_empty_setting_is_as_if_it_were_not_there() -> None:
    assert config_of("servers:\nsurface:\nclients:\n").settings == Settings()


def test_skills_begin_beside_the_file_or_at_home(tmp_path: Path) -> None:
    path = tmp_path / "servers.yaml"
    path.write_text("servers: {}\nskills: [skills, ~/more]\nfind: [Tools, skill]\n")

    settings = load_config(path, {}).settings

    assert settings.skills == (tmp_path / "skills", Path.home() / "more")
    assert settings.find == ("tool", "skill")
    assert config_of("servers: {}\nskills: one\nfind: resource").settings.find == ("resource",)


@pytest.mark.parametrize("written", ["[widget]", "{}", "[[tool]]"])
def test_what_nobody_can_find_is_refused(written: str) -> None:
    assert "find" in str(refusal(f"servers: {{}}\nfind: {written}"))


def test_who_counts_tokens_is_a_tokenizer_or_a_vendor() -> None:
    def tokens(written: str, **environ: str) -> object:
        return config_of(f"servers: {{}}\ntokens: {written}", **environ).settings.tokens

    vendor = "https://api.anthropic.com/v1/messages/count_tokens"
    form = f"{{url: {vendor}, model: claude-opus-5, key: '${{KEY}}'}}"
    counter = tokens(form, KEY="sk-canary")

    assert tokens("tiktoken:o200k_base") == Tokenizer("tiktoken", "o200k_base")
    assert tokens("{tokenizer: 'tiktoken:o200k_base'}") == Tokenizer("tiktoken", "o200k_base")
    assert tokens("tokenizers:/models/vocab.json") == Tokenizer("tokenizers", "/models/vocab.json")
    assert counter == TokenCounter(vendor, "claude-opus-5", "sk-canary")
    assert "sk-canary" not in repr(counter)
    assert config_of("servers: {}").settings.tokens is None
    config = config_of(f"servers: {{}}\ntokens: {form}", KEY="sk-canary")
    assert ("key", "sk-canary") in config.confidential()


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("o200k_base", "must be `tiktoken:ENCODING` or `tokenizers:FILE`"),
        ("'tiktoken:'", "must be `tiktoken:ENCODING`"),
        ("{}", "must be `tiktoken:ENCODING`"),
        ("{tokenizer: 'tiktoken:a', model: b}", "must be `tiktoken:ENCODING`"),
        ("{url: 'https://a/count_tokens'}", "have `url` and `model`"),
        ("{url: 'https://a/v1/messages', model: m}", "ends in `/count_tokens`"),
        ("{url: 'ftp://a/count_tokens', model: m}", "must begin with http:// or https://"),
        ("{url: 'https://a:99999/count_tokens', model: m}", "from 1 to 65535 as its port"),
        ("{url: 'http://a.example/count_tokens', model: m, key: k}", "begins with https://"),
        ("{url: 'https://a/count_tokens', model: m, token: k}", "token"),
    ],
)
def test_what_nobody_can_count_by_is_refused(written: str, words: str) -> None:
    assert words in str(refusal(f"servers: {{}}\ntokens: {written}"))
