"""Which signals end a program: SIGHUP unless it is ignored, and one that comes again does not cut a clean-up short."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from catchment.ending_signals import ended_as_by_ctrl_c, ended_in_order, ending_signals, held_back

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


def end_in_order(*signals: signal.Signals) -> tuple[list[int], BaseException | None]:
    """Have one signal come after the other, all but the first in a clean-up; those it went on after, and the end."""
    passed: list[int] = []

    def block() -> None:
        with ended_in_order():
            try:
                signal.raise_signal(signals[0])
            finally:
                for number in signals[1:]:
                    signal.raise_signal(number)
                    passed.append(number)

    try:
        block()
    except (KeyboardInterrupt, SystemExit) as end:
        return passed, end
    return passed, None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_program_in_order(number: signal.Signals, code: int) -> None:
    passed, end = end_in_order(number, number, signal.SIGHUP, signal.SIGTERM)
    assert passed == [number, signal.SIGHUP, signal.SIGTERM], "the clean-up is not cut short"
    assert isinstance(end, SystemExit) and end.code == code
    assert [signal.getsignal(each) for each in ALL] == [signal.SIG_DFL, signal.default_int_handler, signal.SIG_DFL]


def test_ctrl_c_stays_ctrl_c_where_a_program_is_ended_in_order() -> None:
    assert isinstance(end_in_order(signal.SIGINT)[1], KeyboardInterrupt)
    passed, end = end_in_order(signal.SIGTERM, signal.SIGINT)
    assert passed == [], "Ctrl-C cuts a clean-up short"
    assert isinstance(end, SystemExit) and end.code == 143


def test_what_is_held_back_ends_a_program_in_order() -> None:
    with pytest.raises(SystemExit) as end, ended_in_order(), held_back():
        signal.raise_signal(signal.SIGTERM)
    assert end.value.code == 143


def test_a_thread_is_ended_by_no_signal() -> None:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(ended_in_order().__enter__).result()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
