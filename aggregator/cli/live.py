"""One line at the foot of a terminal, drawn again and again, and gone at the end."""

from aggregator.basics.glyphs import on_one_line
from aggregator.cli.environment import Environment
from aggregator.cli.paper import cut, width_of


class LiveLine:
    """A line on stderr that never takes more than the row it is on."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._drawn = 0
        """Columns that the line on the screen takes."""
        self._shown = ""

    @property
    def is_seen(self) -> bool:
        """Whether there is a terminal to draw it on."""
        return self._environment.stderr.isatty()

    def show(self, text: str) -> None:
        """Draw a text over the one before, as much of it as the terminal is wide now."""
        columns = self._environment.width(self._environment.stderr)
        # In the last column a terminal may go on to the next row.
        line = cut(
            on_one_line(text), columns - 1, self._environment.ellipsis(self._environment.stderr)
        )
        drawn = self._removal(columns) + line
        if drawn != self._shown:
            self._write(drawn)
            self._shown = drawn
        self._drawn = width_of(line)

    def clear(self) -> None:
        """Take the line away, if there is one."""
        if self._drawn:
            self._write(self._removal(self._environment.width(self._environment.stderr)))
            self._drawn = 0
            self._shown = ""

    def _removal(self, columns: int) -> str:
        """Go to where the line begins: a terminal that became narrower broke it into rows."""
        above = max(0, self._drawn - 1) // max(1, columns)
        return f"\r\x1b[{above}A\x1b[J" if above else "\r\x1b[K"

    def _write(self, text: str) -> None:
        print(text, end="", file=self._environment.stderr, flush=True)
