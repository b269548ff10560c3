"""Processes that run the switch's program themselves: the same frames, registers and counters as the switch alone."""

from __future__ import annotations

import fcntl
import gc
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from caller_process import CallerProcess

from catchment.softswitch.build import BuiltProgram, build
from catchment.softswitch.entry import Match
from catchment.softswitch.inprocess import Switch

CELLS = 256
SIZE_SEALS = 0x1 | 0x2 | 0x4  # SEAL, SHRINK, GROW
F_ADD_SEALS = 1033


def built(name: str) -> BuiltProgram:
    """A program of this folder, or of the server's tests."""
    here = Path(__file__).with_name(name)
    return build(here if here.exists() else Path(__file__).parents[1] / "server" / name)


@pytest.fixture(scope="module")
def pairs() -> BuiltProgram:
    """pairs.p4, compiled."""
    return built("pairs.p4")


@pytest.fixture
def switch(pairs: BuiltProgram) -> Switch:
    """A switch that lets callers in."""
    switch = Switch(pairs, seed=1, in_callers=True)
    switch.insert("route", {"standard_metadata.ingress_port": 1}, "forward", port=2)
    return switch


@pytest.fixture
def callers(switch: Switch) -> Iterator[list[CallerProcess]]:
    """Two of them."""
    with CallerProcess(switch) as one, CallerProcess(switch) as two:
        assert one.refusal is two.refusal is None
        yield [one, two]


def frame(value: int, cell: int = 0, tells: int = 0) -> bytes:
    return value.to_bytes(4, "big") + bytes([cell, tells])


def probe(rng: random.Random) -> bytes:
    """A frame of kinds.p4."""
    kind, number = rng.choice([0x0101, 0x0202, 0x0303]), rng.randrange(8)
    address, wide = rng.randrange(4) << 24 | rng.randrange(1 << 24), rng.randrange(1 << 128)
    head = rng.randrange(4).to_bytes(6, "big") + bytes(6) + b"\x88\xb5"
    keys = address.to_bytes(4, "big") + kind.to_bytes(2, "big") + number.to_bytes(2, "big") + wide.to_bytes(16, "big")
    return head + keys + bytes(12) + rng.randbytes(rng.randrange(20))


def change(switches: tuple[Switch, ...], rng: random.Random, step: int) -> None:
    """The same control call to all."""
    value, number, seed = rng.randrange(1 << 16), rng.randrange(8), rng.randrange(4)
    for switch in switches:
        match step % 6:
            case 0:
                keys = {"hdr.ethernet.dst": step // 6 % 4, "standard_metadata.ingress_port": step // 24 % 4}
                action, params = ("flood", {"group": 1 + seed % 2}) if value % 2 else ("forward", {"port": 5 + seed})
                if step < 96:
                    switch.insert("exact_t", keys, action, **params)
            case 1:
                switch.insert("lpm_t", {"hdr.probe.address": (step << 8, 24)}, "set_lpm", value=value)
            case 2:
                mixed: dict[str, Match] = {"hdr.probe.kind": (0x0101, 0xFFFF), "hdr.probe.number": number}
                switch.insert("ternary_t", mixed, "set_ternary", priority=step, value=value)
            case 3:
                switch.insert("range_t", {"hdr.probe.number": (0, number)}, "set_range", priority=step, value=value)
            case 4:
                switch.multicast(1 + seed % 2, [(port, step) for port in range(1, 2 + number)])
            case 5:
                switch.set_default("keyless_t", "set_default", value=value)


def test_all_callers_together_are_the_switch_frame_by_frame(rng: random.Random) -> None:
    program = built("kinds.p4")
    switch, alone = Switch(program, seed=1, in_callers=True), Switch(program, seed=1)
    with CallerProcess(switch) as one, CallerProcess(switch) as two:
        left_by = [0, 0, 0]
        for step in range(1200):
            if step % 4 == 0:
                change((switch, alone), rng, step // 4)
            port, bytes_in = rng.randrange(1, 4), probe(rng)
            who = rng.randrange(3)
            if who == 0:
                left = switch.inject(port, bytes_in)
            else:
                outcome, left, _ = (one, two)[who - 1].inject(port, bytes_in)
                assert outcome == "ran"
            assert left == alone.inject(port, bytes_in)
            left_by[who] += len(left)
        assert min(left_by) > 0
    for name in ("cells", "signed_cells", "wide_cells"):
        assert switch.read_registers(name) == alone.read_registers(name)
    for index in range(16):
        assert switch.read_counter("by_port", index) == alone.read_counter("by_port", index)
        assert switch.statistics(index) == alone.statistics(index)
    for table in ("exact_t", "lpm_t", "ternary_t", "range_t"):
        assert switch.entries(table) == alone.entries(table)  # with their counters


def test_a_program_that_is_loaded_later_is_run_by_the_next_frame(switch: Switch, callers: list[CallerProcess]) -> None:
    one, two = callers
    assert one.inject(1, frame(5)) == ("ran", [(2, frame(5))], [])
    kinds = built("kinds.p4")
    switch.dataplane.load(str(kinds.shared_object))
    assert one.inject(1, frame(5)) == ("ran", [], [])  # too short for that one
    switch.dataplane.load(str(built("pairs.p4").shared_object))
    for caller in (one, two, one):
        assert caller.inject(1, frame(5, tells=1))[0::2] == ("ran", ["between"])
    assert switch.read_register("second", 0) == 5


def test_frames_are_the_switchs_while_it_has_no_program(pairs: BuiltProgram) -> None:
    switch = Switch(pairs, in_callers=True)
    switch.dataplane = type(switch.dataplane)(1, 1000, True)
    with CallerProcess(switch) as caller:
        assert caller.inject(1, frame(5)) == ("no program", [], [])
        switch.dataplane.load(str(pairs.shared_object))
        assert caller.inject(1, frame(5))[0] == "ran"


def test_a_program_with_externs_of_its_own_stays_in_the_switch() -> None:
    folder = Path(__file__).parents[1] / "externs"
    switch = Switch(build(folder / "bloom.p4", externs=folder / "bloom.hpp"), in_callers=True)
    with CallerProcess(switch) as caller:
        assert caller.inject(1, bytes(64))[0] == "no program"


def test_who_finds_a_dead_owner_leaves_frames_to_the_switch(switch: Switch, callers: list[CallerProcess]) -> None:
    one, two = callers
    assert two.inject(1, frame(4, cell=7))[0] == "ran"
    one.ask("inject_and_raise", 1, frame(9, cell=3), int(signal.SIGKILL))
    assert one.process.wait(60) == -signal.SIGKILL
    assert two.inject(1, frame(5, cell=3)) == ("torn", [], [])
    assert two.inject(1, frame(5, cell=3)) == ("torn", [], [])
    assert switch.read_registers("first") == [0] * CELLS  # the switch has repaired it
    assert two.inject(1, frame(5, cell=3)) == ("ran", [(2, frame(5, cell=3))], [])
    assert [entry.counter for entry in switch.entries("route")] == [(3, 18)]
    assert switch.read_register("second", 3) == 5


def test_who_has_no_memory_left_in_the_middle_of_a_frame_gives_the_lock_back(
    switch: Switch, callers: list[CallerProcess]
) -> None:
    one, two = callers
    assert one.inject(1, frame(4, cell=7))[0] == "ran"
    one.ask("inject_and_throw", 1, frame(9, cell=3))
    assert one.answer() == "MemoryError"
    assert two.inject(1, frame(5, cell=3)) == ("torn", [], [])
    assert switch.read_registers("first") == [0] * CELLS  # the switch has repaired it
    for caller in (two, one):
        assert caller.inject(1, frame(5, cell=3)) == ("ran", [(2, frame(5, cell=3))], [])
    assert switch.read_register("second", 3) == 5


def test_nobody_waits_long_for_a_stopped_owner(switch: Switch, callers: list[CallerProcess]) -> None:
    one, two = callers
    one.ask("inject_and_raise", 1, frame(9, cell=3), int(signal.SIGSTOP))
    assert os.waitid(os.P_PID, one.process.pid, os.WSTOPPED | os.WNOWAIT) is not None
    assert two.inject(1, frame(5, cell=4)) == ("busy", [], [])
    one.process.send_signal(signal.SIGCONT)
    assert one.answer() == "ran"
    assert two.inject(1, frame(5, cell=4))[0] == "ran"
    assert switch.read_registers("first")[3:5] == [9, 5]


def test_who_shares_a_processor_yields_it_to_who_has_the_lock(switch: Switch, callers: list[CallerProcess]) -> None:
    """Yielding takes the processor for a millisecond, or another runs meanwhile; spinning and sleeping do not."""
    one, two = callers
    process = Path(f"/proc/{two.process.pid}")

    def used() -> tuple[int, int]:
        """Nanoseconds on a processor, and how often others had it although this one wanted it."""
        given_up = re.search(r"nonvoluntary_ctxt_switches:\s*(\d+)", (process / "status").read_text())
        assert given_up is not None
        return int((process / "schedstat").read_text().split()[0]), int(given_up[1])

    def cost(*, shares: bool) -> tuple[int, int]:
        before = used()
        two.ask("inject_beside", 1, frame(5, cell=4), shares)
        assert two.answer() == ("busy", 1)
        return used()[0] - before[0], used()[1] - before[1]

    two.ask("inject_beside", 1, frame(5, cell=4), True)
    assert two.answer() == ("ran", 0)
    one.ask("inject_and_raise", 1, frame(9, cell=3), int(signal.SIGSTOP))
    assert os.waitid(os.P_PID, one.process.pid, os.WSTOPPED | os.WNOWAIT) is not None
    yielded, given_up = cost(shares=True)
    alone = min(cost(shares=False)[0] for _ in range(3))
    assert yielded > alone + 500_000 or given_up


def test_a_switch_that_has_ended_runs_nothing_in_its_callers(pairs: BuiltProgram) -> None:
    switch = Switch(pairs, in_callers=True)
    with CallerProcess(switch) as caller:
        assert caller.inject(1, frame(5))[0] == "ran"
        del switch
        gc.collect()
        assert caller.inject(1, frame(5)) == ("closed", [], [])


@pytest.mark.sampled(4)
def test_callers_killed_at_any_moment_leave_whole_frames_or_none(switch: Switch, rng: random.Random) -> None:
    frames = [(1, frame(rng.randrange(1, 1 << 32), cell)) for cell in range(CELLS)]
    for _ in range(12):
        with CallerProcess(switch) as one, CallerProcess(switch) as two:
            for caller in (one, two):
                caller.ask("repeat", frames, 1 << 40)
            while switch.read_register("first", 0) == 0:
                assert one.process.poll() is None
            time.sleep(rng.random() * 0.003)
            one.kill()
            second, first = switch.read_registers("second"), switch.read_registers("first")
            # The other one may have come in between the two readings, with the same frames.
            assert all(a == b or 0 in (a, b) for a, b in zip(first, second, strict=True))
            two.kill()
            second, first = switch.read_registers("second"), switch.read_registers("first")
            assert first == second
            switch.write_register("first", None, 0)
            switch.write_register("second", None, 0)
    assert switch.inject(1, frame(5)) == [(2, frame(5))]


def test_a_caller_checks_what_it_is_handed(switch: Switch) -> None:
    cases = {
        "the size of its memory is not sealed": (b"", 0),
        "does not begin with TCHSTATE": (b"CATCHSHM", SIZE_SEALS),
        "of another version": (b"TCHSTATE" + b"\xff" * 8, SIZE_SEALS),
    }
    for says, (head, seals) in cases.items():
        descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, 1 << 20)
        os.pwrite(descriptor, head, 0)
        if seals:
            fcntl.fcntl(descriptor, F_ADD_SEALS, seals)
        with CallerProcess(switch, descriptor=descriptor) as caller:
            assert caller.refusal is not None
            assert says in caller.refusal
        os.close(descriptor)
    with CallerProcess(switch, descriptor=1 << 20) as caller:
        assert caller.refusal is not None
        assert "cannot be looked at" in caller.refusal
