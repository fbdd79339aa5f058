"""How `serve` was typed, as far as it matters before everything else is loaded."""

from collections.abc import Iterator, Sequence

WITH_VALUE = ("--config", "--log-format", "--profile")
"""Options of serving over stdio that are followed by a value, or by `=` and a value."""


class Typed:
    """What was asked for by `aggregator serve` over stdio."""

    __slots__ = ("config", "example", "profile", "shared", "verbose")

    def __init__(
        self,
        config: str | None = None,
        *,
        example: bool = False,
        shared: bool = False,
        verbose: bool = False,
        profile: str = "",
    ) -> None:
        self.config = config
        """The file that is named, if one is."""
        self.example = example
        """Whether the servers that come with us are meant."""
        self.shared = shared
        """Whether one process is to serve all clients."""
        self.verbose = verbose
        self.profile = profile
        """What the client is to see, if that is said."""


def typed(arguments: Sequence[str]) -> Typed | None:
    """Return what was typed, or `None` where anything else is meant than to serve over stdio.

    Nothing is refused here: what this does not know, the real parser takes or complains of.
    """
    if not arguments or arguments[0] != "serve":
        return None
    config, profile, flags = None, "", set[str]()
    for option, value in _options(arguments[1:]):
        match option:
            case "--config" if value:
                config = value
            case "--profile" if value:
                profile = value
            case "--log-format" if value:
                pass
            case "--example" | "--shared" | "--verbose" if value is None:
                flags.add(option)
            case _:
                return None
    if config is not None and "--example" in flags:
        return None
    return Typed(
        config,
        example="--example" in flags,
        shared="--shared" in flags,
        verbose="--verbose" in flags,
        profile=profile,
    )


def _options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each option and its value, as argparse reads them."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        elif word in WITH_VALUE:
            following = next(rest, "")
            # What begins like an option is none's value.
            yield word, "" if following.startswith("-") else following
        elif word.startswith("-v") and not word.strip("v").strip("-"):
            yield "--verbose", None
        else:
            yield word, None
