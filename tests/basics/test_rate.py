"""So many pass in any stretch of time, and the rest are counted."""

from aggregator.basics.rate import Rate


def test_so_many_pass_in_any_stretch_of_time() -> None:
    rate = Rate(2, within=60.0)

    assert [rate.admits(now) for now in (0, 1, 2, 59)] == [True, True, False, False]
    assert rate.refused == 2
    assert [rate.admits(now) for now in (60, 60.5, 61)] == [True, False, True]
    assert rate.refused == 0
