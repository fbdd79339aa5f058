"""What pieces of texts count."""

import pytest

from aggregator.search.semantic.weighing import Commonness, told
from aggregator.search.weights import AFTERWARDS, COMMON_PIECE, UNTOLD_TOOLS


def test_a_piece_counts_less_the_more_tools_have_it() -> None:
    common = Commonness([[1, 2], [1], [1, 3], [1]])

    assert 1 > common.worth(3) > common.worth(1) > 0
    assert common.worth(2) == common.worth(3)


def test_a_piece_that_no_tool_has_counts_whole() -> None:
    assert Commonness([[1]]).worth(2) == 1
    assert Commonness().worth(1) == 1


def test_a_piece_counts_half_where_so_many_tools_have_it_as_are_called_common() -> None:
    having = [[1]] * round(COMMON_PIECE * 2 * UNTOLD_TOOLS)
    others = [[2]] * (UNTOLD_TOOLS - len(having))

    assert Commonness(having + others).worth(1) == pytest.approx(0.5)


def test_few_tools_say_little_of_which_pieces_are_common() -> None:
    assert Commonness([[1], [2]]).worth(1) > 0.7


@pytest.mark.parametrize("end", [".", "!", "?", "\n"])
def test_what_stands_behind_the_first_sentence_counts_less(end: str) -> None:
    text = f"files read: Reads a file{end} Fails without one."

    assert told(text, [0, text.index("Reads"), text.index("Fails")]) == [1, 1, AFTERWARDS]


@pytest.mark.parametrize("text", ["", "files read: Version 1.5 of a.txt", "files read: Reads it."])
def test_a_text_of_one_sentence_counts_whole(text: str) -> None:
    assert set(told(text, range(len(text)))) <= {1.0}
