"""Which signals end a program: SIGHUP unless it is ignored, and one that comes again does not cut a clean-up short."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from catchment.ending_signals import ended_as_by_ctrl_c, ending_signals, held_back

ALL = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    """The signals as a program in a terminal has them, whatever these tests run below."""
    defaults = (signal.SIG_DFL, signal.default_int_handler, signal.SIG_DFL)
    before = [signal.signal(number, handler) for number, handler in zip(ALL, defaults, strict=True)]
    yield
    for number, handler in zip(ALL, before, strict=True):
        signal.signal(number, handler)


def test_a_closed_terminal_ends_a_program() -> None:
    assert set(ending_signals()) == set(ALL)


def test_what_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert set(ending_signals()) == {signal.SIGTERM, signal.SIGINT}
    with ended_as_by_ctrl_c():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", ALL)
def test_a_signal_does_what_ctrl_c_does(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), ended_as_by_ctrl_c():
        signal.raise_signal(number)
    hang_up = signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL  # one that has come may come again
    assert [signal.getsignal(each) for each in ALL] == [signal.SIG_DFL, signal.default_int_handler, hang_up]


def test_a_terminal_that_hangs_up_twice_does_not_cut_a_clean_up_short() -> None:
    cleaned = []

    def program() -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt), ended_as_by_ctrl_c():
        program()
    assert cleaned


def hold_back(*signals: signal.Signals) -> list[int]:
    """Have signals come one after the other while they are held back; those after which the block went on, if ended."""
    passed: list[int] = []
    with suppress(KeyboardInterrupt), ended_as_by_ctrl_c():
        with held_back():
            for number in signals:
                signal.raise_signal(number)
                passed.append(number)
        return []
    return passed


def test_ctrl_c_that_may_not_count_at_once_is_held_back_however_often_it_comes() -> None:
    reached = 0

    def interrupted_thrice() -> None:
        nonlocal reached
        with held_back(even_ctrl_c_again=True):
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
                reached += 1

    with pytest.raises(KeyboardInterrupt):
        interrupted_thrice()
    assert reached == 3


@pytest.mark.parametrize("number", ALL)
def test_a_signal_that_is_held_back_comes_when_the_block_is_through(number: signal.Signals) -> None:
    assert hold_back(number) == [number]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_alone_is_not_held_back_twice(number: signal.Signals) -> None:
    assert hold_back(number, number, signal.SIGINT, signal.SIGINT, number) == [number, number, signal.SIGINT]
    assert [signal.getsignal(each) for each in ALL] == [signal.SIG_DFL, signal.default_int_handler, signal.SIG_DFL]


def test_a_thread_holds_no_signal_back() -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(held_back().__enter__).result()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
