"""State in memory that processes share: what a process leaves behind that dies with the lock is repaired before use."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.softswitch import native
from catchment.softswitch.build import BuiltProgram, build
from catchment.softswitch.inprocess import Switch

CELLS = 256
TELLS = 1
PATIENCE = 30
"""Seconds that a child may take, on however busy a machine."""


@pytest.fixture(scope="module")
def pairs() -> BuiltProgram:
    """pairs.p4, compiled."""
    return build(Path(__file__).with_name("pairs.p4"))


@pytest.fixture
def switch(pairs: BuiltProgram) -> Switch:
    """A switch that forked children run, too."""
    switch = Switch(pairs, seed=1, in_callers=True)
    switch.insert("route", {"standard_metadata.ingress_port": 1}, "forward", port=2)
    return switch


def frame(value: int, cell: int = 0, tells: int = 0) -> bytes:
    return value.to_bytes(4, "big") + bytes([cell, tells])


def in_child(work: Callable[[], object]) -> int:
    """A forked child that does the work and ends; its pid. SIGALRM ends it if it waits for ever."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # pytest's handler runs between two bytecodes only
            signal.alarm(PATIENCE)
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return pid


def ended(pid: int) -> int:
    """How it ended: its exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_childs_frames_are_the_parents_state(switch: Switch) -> None:
    switch.inject(1, frame(5, cell=1))
    assert ended(in_child(lambda: switch.inject(1, frame(7, cell=2)))) == 0
    assert switch.read_registers("first")[:3] == [0, 5, 7]
    assert [entry.counter for entry in switch.entries("route")] == [(2, 12)]
    assert switch.statistics(1)["rx_packets"] == 2


def test_nothing_is_shared_unless_asked_for(pairs: BuiltProgram) -> None:
    alone = Switch(pairs, seed=1)
    assert ended(in_child(lambda: alone.inject(1, frame(7)))) == 0
    assert alone.read_registers("first") == [0] * CELLS


def test_no_entry_leads_out_of_shared_memory(switch: Switch) -> None:
    for port in range(2, 300):
        switch.insert("route", {"standard_metadata.ingress_port": port}, "forward", port=port)
    switch.multicast(1, [1, 2, 3])
    assert switch.dataplane.strays() == []


def killed_between(switch: Switch) -> int:
    """A child that is killed between the two writes of its frame; its pid."""

    def die() -> None:
        switch.on_log(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        switch.inject(1, frame(9, cell=4, tells=TELLS))

    return in_child(die)


def test_the_lock_of_a_dead_owner_keeps_nobody_waiting(switch: Switch) -> None:
    assert ended(killed_between(switch)) == -signal.SIGKILL
    assert ended(in_child(lambda: switch.read_register("first", 4))) == 0


def test_what_a_dead_owner_left_is_renewed(switch: Switch) -> None:
    switch.inject(1, frame(5, cell=3))
    assert ended(killed_between(switch)) == -signal.SIGKILL
    assert switch.read_registers("first") == [0] * CELLS
    assert switch.read_registers("second") == [0] * CELLS
    assert [entry.counter for entry in switch.entries("route")] == [(2, 12)]  # tables stay
    assert switch.inject(1, frame(6, cell=3)) == [(2, frame(6, cell=3))]
    assert switch.read_register("second", 3) == 6  # once only


def test_who_waits_for_a_stopped_owner_goes_on_when_it_dies(switch: Switch) -> None:
    read, write = os.pipe()

    def stop() -> None:
        def told(_: str) -> None:
            os.write(write, b"x")
            os.kill(os.getpid(), signal.SIGSTOP)

        switch.on_log(told)
        switch.inject(1, frame(9, cell=4, tells=TELLS))

    pid = in_child(stop)
    assert os.read(read, 1) == b"x"  # it has the lock
    waiting = in_child(lambda: switch.inject(1, frame(6, cell=5)))
    assert os.waitid(os.P_PID, pid, os.WSTOPPED) is not None
    os.kill(pid, signal.SIGKILL)
    assert ended(pid) == -signal.SIGKILL
    assert ended(waiting) == 0
    assert switch.read_registers("first") == [6 if cell == 5 else 0 for cell in range(CELLS)]
    assert switch.read_registers("first") == switch.read_registers("second")
    os.close(read)
    os.close(write)


def test_death_at_any_moment_leaves_whole_frames_or_none(switch: Switch, rng: random.Random) -> None:
    frames = [(1, frame(rng.randrange(1, 1 << 32), cell)) for cell in range(CELLS)]
    torn = 0
    for _ in range(40):
        pid = in_child(lambda: native.runtime().replay(switch.dataplane, frames, 1 << 40, 0, 1))
        deadline = time.monotonic() + 60
        while switch.read_register("first", 0) == 0 and time.monotonic() < deadline:
            pass  # control calls get in between the batches
        time.sleep(rng.random() * 0.003)
        os.kill(pid, signal.SIGKILL)
        assert ended(pid) == -signal.SIGKILL
        # One call reads one register: the first of them repairs.
        second = switch.read_registers("second")
        first = switch.read_registers("first")
        assert first == second
        torn += first == [0] * CELLS
        switch.write_register("first", None, 0)
        switch.write_register("second", None, 0)
    assert torn > 0


def test_control_calls_get_in_while_children_run(switch: Switch) -> None:
    frames = [(1, frame(1, cell)) for cell in range(CELLS)]
    pids = [in_child(lambda: native.runtime().replay(switch.dataplane, frames, 1 << 40, 0, 1)) for _ in range(2)]

    def insert(port: int) -> None:
        switch.insert("route", {"standard_metadata.ingress_port": port}, "forward", port=3)

    threads = [threading.Thread(target=insert, args=(port,)) for port in range(2, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(switch.entries("route")) == 99
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        ended(pid)
    assert switch.read_registers("first") == switch.read_registers("second")
