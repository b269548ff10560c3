"""What a turn leaves queued while another process has the switch's program, and who sends it."""

from __future__ import annotations

import pytest

from catchment.host import _machines

Flushed = _machines.Flushed
MS = 1_000_000


@pytest.mark.parametrize("answer", [Flushed.ALL, Flushed.FULL, Flushed.LATER])
@pytest.mark.parametrize("may_wait", [False, True])
def test_who_has_received_something_waits_for_nobody(may_wait: bool, answer: _machines.Flushed) -> None:
    turned = _machines.Turned()
    turned.turn(comes=True, may_wait=may_wait, answer=answer)
    assert turned.counted == ((1, 0) if may_wait else (0, 1))
    assert turned.unsent == (not may_wait and answer == Flushed.LATER)
    assert turned.blocked == (answer == Flushed.FULL)


def test_a_turn_in_which_nothing_comes_sends_what_is_queued() -> None:
    turned = _machines.Turned()
    turned.turn(comes=True, may_wait=False, answer=Flushed.LATER)
    assert turned.unsent
    turned.turn(comes=False, may_wait=False, answer=Flushed.LATER)
    assert turned.counted == (1, 1)
    assert not turned.unsent


def test_a_flush_sends_what_is_queued() -> None:
    turned = _machines.Turned()
    turned.turn(comes=True, may_wait=False, answer=Flushed.LATER)
    turned.flush()
    assert turned.counted == (1, 1)
    assert not turned.unsent


def test_a_turn_takes_what_its_rank_has_sent_to_itself() -> None:
    """All of it, while it is in the nearest cache."""
    assert _machines.own_after_a_turn(5) == 0


@pytest.mark.parametrize("answers", [False, True])
def test_a_rank_takes_what_it_has_sent_to_itself_before_it_queues_more(answers: bool) -> None:
    """Ports say whether there is something."""
    assert _machines.own_before_a_flush(answers) == (0 if answers else 3)


@pytest.mark.parametrize("batches", [1, 3])
def test_a_caller_that_has_what_it_waits_for_leaves_nothing_queued(batches: int) -> None:
    """Nobody may take a turn for a long time afterwards: the caller computes."""
    flushed, offered = _machines.after_a_wait(batches, 60_000 * MS)
    assert offered == batches
    assert flushed >= 1


@pytest.mark.parametrize("time", [0, 100])
def test_a_caller_whose_time_is_over_leaves_nothing_queued(time: int) -> None:
    """Frames come in every turn, also in the last one; who has no time takes one turn."""
    flushed, offered = _machines.after_a_wait(1 << 30, time * MS)
    assert offered >= 1
    assert flushed >= 1


def test_an_engine_that_goes_leaves_nothing_queued() -> None:
    assert _machines.after_a_removal() == (1, 1)


def test_a_port_that_an_engine_leaves_sends_nothing_of_it_later() -> None:
    """What it has queued lies in the engine, and would be another vector by the time that the engine comes back."""
    assert _machines.after_a_change() == (1, 0)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_whoever_takes_a_turn_and_goes_leaves_no_sleeper_deaf(waits: bool, begun: bool) -> None:
    """A port wakes who has armed it last, and a turn disarms it: the hub's own thread, or a caller, arms it again."""
    sleeping = _machines.Sleeping()
    if waits:
        sleeping.have_a_waiter()
    for _ in range(5):
        assert sleeping.armed
        assert not sleeping.turn()
        sleeping.hand_on(begun=begun)
    assert sleeping.armed


def test_a_sleeper_is_woken_when_another_thread_has_received_what_it_waits_for() -> None:
    sleeping = _machines.Sleeping()
    sleeping.have_a_waiter()
    assert sleeping.armed
    sleeping.finish()
    assert sleeping.ended
