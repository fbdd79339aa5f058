"""When tools are deferred, in the words of the file."""

from aggregator.basics.frozen import frozen


@frozen
class ToolSearchMode:
    """When tools are deferred: once their definitions fill so much of the context window.

    Always is 0 percent, never is 100: the three ways to write it are one number.
    """

    percent: int = 0

    @property
    def always(self) -> bool:
        """Whether tools are deferred however few they are."""
        return self.percent == 0

    @property
    def never(self) -> bool:
        """Whether every tool is shown however many they are."""
        return self.percent == 100  # noqa: PLR2004 a hundred percent

    @classmethod
    def parse(cls, text: str) -> "ToolSearchMode":
        """Return the mode written as `true`, `false`, `auto` or `auto:N`.

        Raises:
            ValueError: It is none of these.
        """
        plain = text.strip().lower()
        if plain in _WORDS:
            return cls(_WORDS[plain])
        percent = plain.removeprefix("auto:")
        if percent == plain or not percent.isdecimal() or not 0 <= int(percent[:4]) <= 100:  # noqa: PLR2004
            raise ValueError(text)
        return cls(int(percent))

    def __str__(self) -> str:
        """Return the mode as it is written."""
        return "true" if self.always else "false" if self.never else f"auto:{self.percent}"


_WORDS = {"true": 0, "on": 0, "yes": 0, "false": 100, "off": 100, "no": 100, "auto": 10}
