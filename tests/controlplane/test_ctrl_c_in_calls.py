"""Ctrl-C while a switch or a controller is asked: the client closes all the same, and what was begun comes first."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake

from catchment.controlplane.client import MulticastGroup, SwitchClient, SwitchError
from catchment.controlplane.client import aside as aside_module
from catchment.controlplane.client.aside import Aside, at_once, within
from catchment.controlplane.controller.certificates import make
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.operator import OperatorClient


def ctrl_c_before_a_lock_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Ctrl-C come when the main thread leaves a condition: where it hurts most, and often comes."""
    real = threading.Condition.__exit__

    def leave(self: threading.Condition, *arguments: Any) -> None:
        if threading.get_ident() == threading.main_thread().ident:
            raise KeyboardInterrupt
        real(self, *arguments)

    monkeypatch.setattr(threading.Condition, "__exit__", leave)


def comes_to_an_end(closing: threading.Thread) -> bool:
    closing.start()
    closing.join(20)
    return not closing.is_alive()


def test_a_client_closes_after_ctrl_c(fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    client = SwitchClient.connect(fake.address, timeout=60.0)
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        ctrl_c_before_a_lock_is_given_back(patch)
        client.set_group(5, [1, 2])
        assert client.groups() == {5: [1, 2]}
    assert comes_to_an_end(threading.Thread(target=client.close, daemon=True))


def test_a_client_that_connects_closes_after_ctrl_c(fake: RunningFake, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        ctrl_c_before_a_lock_is_given_back(patch)
        try:
            client = SwitchClient.connect(fake.address, timeout=60.0)
            client.close()
        except KeyboardInterrupt:
            pytest.fail("the main thread has taken a lock")
    del client  # what gRPC does then has no part in this


def test_an_operator_closes_after_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is an answer as good as any."""
    make(tmp_path, ["127.0.0.1"])
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        client = OperatorClient(f"127.0.0.1:{port}", tmp_path, timeout=60.0)
        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt, ControllerError):
            ctrl_c_before_a_lock_is_given_back(patch)
            client.jobs()
        assert comes_to_an_end(threading.Thread(target=client.__exit__, args=(None, None, None), daemon=True))
    finally:
        server.stop(None)


class InterruptingSwitch(FakeSwitch):
    """Has Ctrl-C come while it writes, and lets reads overtake the write where the client sends them."""

    def __init__(self, **state: Any) -> None:
        super().__init__(**state)
        self.is_read = threading.Event()
        self.interrupts = True

    def Write(self, request: Any, context: Any) -> Any:  # noqa: N802
        if self.interrupts:
            self.interrupts = False
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            self.is_read.wait(0.5)  # no read comes before the answer
        return super().Write(request, context)

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.is_read.set()
        return super().Read(request, context)


def test_a_write_that_is_under_way_ends_before_the_next_call() -> None:
    """What cleans up after Ctrl-C sees what was written."""
    with (
        RunningFake(InterruptingSwitch(p4info=fake_p4info())) as fake,
        SwitchClient.connect(fake.address, timeout=60.0) as client,
    ):
        with pytest.raises(KeyboardInterrupt):
            client.insert(MulticastGroup.of_ports(5, [1, 2]))
        assert client.groups() == {5: [1, 2]}


def test_ctrl_c_when_the_thread_starts_leaves_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would make calls at the same time."""
    aside, order, second_has_run = Aside(), [], threading.Event()

    def first() -> None:
        second_has_run.wait(0.5)  # it does not come before this ends
        order.append("first")

    def second() -> None:
        order.append("second")
        second_has_run.set()

    def start(*arguments: Any) -> None:
        _thread.start_new_thread(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(aside_module, "_thread", SimpleNamespace(start_new_thread=start))
        with pytest.raises(KeyboardInterrupt):
            aside(first)
    aside.later(first)
    aside(second)
    aside(lambda: None)
    assert order == ["first", "second"]


def test_calls_at_once_come_to_their_end_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        ctrl_c_before_a_lock_is_given_back(patch)
        try:
            answers = at_once(str.upper, ["s1", "s2"], most=2)
        except KeyboardInterrupt:
            pytest.fail("the main thread has taken a lock")
    assert answers == ["S1", "S2"]


def test_ctrl_c_between_the_last_look_and_the_wait_ends_it() -> None:
    """The interpreter is told of it, and nothing wakes the main thread."""
    ended, seen = threading.Event(), []

    def call() -> None:
        time.sleep(0.1)  # the main thread waits
        _thread.interrupt_main()
        seen.append(ended.wait(20))

    aside = Aside()
    with pytest.raises(KeyboardInterrupt):
        aside(call)
    ended.set()
    aside(lambda: None)  # after the call
    assert seen == [True]


def test_no_call_begins_after_ctrl_c() -> None:
    begun: list[int] = []
    cut, all_wait, two = threading.Event(), threading.Event(), threading.Barrier(2)

    class Numbers(list[int]):
        def __iter__(self) -> Iterator[int]:
            yield from super().__iter__()
            all_wait.set()

    def ask(number: int) -> None:
        begun.append(number)
        two.wait(20)
        if number == 0:
            all_wait.wait(20)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        cut.wait(20)

    with pytest.raises(KeyboardInterrupt):
        at_once(ask, Numbers(range(8)), most=2, cut_short=cut.set)
    assert sorted(begun) == [0, 1]


def test_errors_arrive_as_they_are(fake: RunningFake) -> None:
    with SwitchClient.connect(fake.address, timeout=60.0) as client:
        client.insert(MulticastGroup.of_ports(5, [1, 2]))
        with pytest.raises(SwitchError, match="entry exists"):
            client.insert(MulticastGroup.of_ports(5, [1, 2]))


def test_what_does_not_end_is_left_alone() -> None:
    never = threading.Event()
    assert not within(0.01, never.wait)
    never.set()
    assert within(60.0, never.wait)
