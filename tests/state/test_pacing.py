from __future__ import annotations

from typing import Any

import pytest

from accord.state.pacing import DELTA_COST, Due, Pace


def decide(pace: Pace, received: int, now: float | None = None, **given: Any) -> Due:
    facts = {"ended_cost": 0, "text_ended": False, "text_cost": None, "sent": 0, "growth": 0} | given
    return pace.decide(received, now, **facts)


def a_spent_pace(**given: Any) -> Pace:
    """A pace with nothing left of what it may spend at the start."""
    pace = Pace(max_delay=0.25, min_growth=100, **given)
    assert decide(pace, 0, ended_cost=2_048 - DELTA_COST) is Due.EVERYTHING
    assert decide(pace, 0, ended_cost=1_024 - DELTA_COST) is Due.ENDED
    return pace


def test_the_first_characters_do_not_wait() -> None:
    pace = Pace(max_delay=0.25, min_growth=100)
    assert decide(pace, 1, text_cost=40, growth=1) is Due.EVERYTHING
    assert decide(pace, 2, text_cost=41, sent=1, growth=1) is Due.EVERYTHING
    assert pace.wake_at == 0


def test_nothing_is_due_when_there_is_nothing() -> None:
    pace = Pace(max_delay=0.25, min_growth=100)
    assert decide(pace, 5) is Due.NOTHING
    assert decide(pace, 5, text_cost=90, sent=9, growth=0) is Due.NOTHING


def test_an_ended_value_is_due_when_the_text_has_paid_for_it() -> None:
    pace = a_spent_pace()
    assert decide(pace, 10, ended_cost=100) is Due.NOTHING
    assert decide(pace, 59, ended_cost=100) is Due.NOTHING
    assert decide(pace, 60, ended_cost=100) is Due.ENDED
    assert decide(pace, 60, ended_cost=10) is Due.NOTHING


def test_a_large_value_is_due_in_the_end() -> None:
    pace = a_spent_pace()
    assert [decide(pace, received, ended_cost=10_000) for received in range(500, 5_000, 500)].count(Due.ENDED) == 1


def test_a_quiet_stretch_does_not_pay_for_a_noisy_one() -> None:
    pace = a_spent_pace()
    assert decide(pace, 1_000_000) is Due.NOTHING
    assert decide(pace, 1_000_000, ended_cost=1_024 - DELTA_COST) is Due.ENDED
    assert decide(pace, 1_000_000, ended_cost=1) is Due.NOTHING


@pytest.mark.parametrize(("sent", "needed"), [(0, 100), (100, 100), (800, 100), (808, 101), (16_000, 2_000)])
def test_an_open_text_is_due_when_it_has_grown_by_an_eighth(sent: int, needed: int) -> None:
    pace = a_spent_pace()
    assert decide(pace, 1, text_cost=sent, sent=sent, growth=needed - 1) is Due.NOTHING
    assert pace.wake_at == 2
    assert decide(pace, 2, text_cost=sent, sent=sent, growth=needed) is Due.EVERYTHING


def test_the_end_of_a_text_on_the_wire_is_due_at_once() -> None:
    pace = a_spent_pace()
    assert decide(pace, 1, ended_cost=500, text_ended=True) is Due.EVERYTHING


def test_everything_is_due_after_the_delay() -> None:
    pace = a_spent_pace()
    assert decide(pace, 1, 10.0, text_cost=50, sent=9, growth=1) is Due.NOTHING
    assert pace.due_at == 10.25
    assert decide(pace, 2, 10.24, text_cost=50, sent=9, growth=2) is Due.NOTHING
    assert decide(pace, 3, 10.25, text_cost=50, sent=9, growth=3) is Due.EVERYTHING
    assert decide(pace, 4, 10.49, text_cost=50, sent=12, growth=1) is Due.NOTHING
    assert decide(pace, 5, 10.5, ended_cost=500) is Due.EVERYTHING
    assert decide(pace, 6, 99.0) is Due.NOTHING
    assert decide(pace, 7, 99.1, ended_cost=500) is Due.EVERYTHING


def test_an_ended_value_does_not_put_off_the_open_text() -> None:
    pace = a_spent_pace()
    decide(pace, 0, 10.0)
    assert decide(pace, 400, 10.2, ended_cost=20, text_cost=50, sent=9, growth=3) is Due.ENDED
    assert decide(pace, 401, 10.25, text_cost=50, sent=9, growth=4) is Due.EVERYTHING


def test_what_is_left_of_the_start_ends_when_a_text_no_longer_fits() -> None:
    pace = Pace(max_delay=0.25, min_growth=100)
    decide(pace, 0, ended_cost=1_848 - DELTA_COST)
    assert pace.wake_at == 0
    assert decide(pace, 9, text_cost=300, sent=0, growth=9) is Due.NOTHING
    assert pace.wake_at > 9


def test_pieces_may_wait_for_company() -> None:
    pace = a_spent_pace()
    decide(pace, 1_000)
    assert 1_000 + 32 <= pace.wake_at <= 1_000 + 128
