"""All-reduce through slots over real sockets: every sum right, whatever the network does, and every error named."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from relay import Address
from slot_relay import SlotRelay

from catchment.host import AllReducer, EndpointError, Stream
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType, DropReason, Flag, Header, PacketType

LOCAL = ("127.0.0.1", 0)
GEN = 9
WILD = {"loss": 0.05, "duplicate": 0.1, "reorder": 0.2}


@contextmanager
def job(
    workers: int, *, slots: int = 4, lanes: int = 8, timeout: float = 120.0, spin: float = 0.0, **faults: Any
) -> Iterator[tuple[SlotRelay, list[AllReducer]]]:
    """A switch and its members."""
    stream = Stream(gen=GEN, workers=workers, slots=slots, lanes=lanes, base_seq=(1 << 32) - 7)
    with ExitStack() as stack:
        relay = stack.enter_context(SlotRelay(gen=GEN, workers=workers, slots=slots, lanes=lanes, **faults))
        members = []
        for wid in range(workers):
            member = stack.enter_context(
                AllReducer(stream=stream, wid=wid, local=LOCAL, switch=relay.address, timeout=timeout, spin=spin)
            )
            relay.members.append(member.local)
            members.append(member)
        yield relay, members


def together(members: list[AllReducer], what: Callable[[int, AllReducer], None]) -> None:
    """`what` in a thread for each member; the first exception of any is raised."""
    errors: list[BaseException] = []

    def run(wid: int, member: AllReducer) -> None:
        try:
            what(wid, member)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def integers(seed: int, wid: int, turn: int, size: int) -> NDArray[np.int32]:
    return np.random.default_rng((seed, wid, turn)).integers(-(1 << 31), 1 << 31, size).astype(np.int32)


def integer_sum(seed: int, workers: int, turn: int, size: int) -> NDArray[np.int32]:
    """What the integers of all workers add up to, modulo 2^32."""
    return np.asarray(sum(integers(seed, w, turn, size).astype(np.int64) for w in range(workers))).astype(np.int32)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spin", [0.0, 0.001])
@pytest.mark.parametrize("faults", [{}, WILD], ids=["clean", "wild"])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_integers(workers: int, faults: dict[str, float], spin: float, seed: int) -> None:
    """Several lengths, in place and not, across the wrap of seq; every worker and every lane has its own data."""
    sizes = [8, 1, 7, 9, 40, 100]

    def work(wid: int, member: AllReducer) -> None:
        for turn in range(12):
            size = sizes[turn % len(sizes)]
            own = integers(seed, wid, turn, size)
            kept = own.copy()
            out = own if turn % 2 else np.zeros_like(own)
            member.all_reduce(own, out=out)
            assert np.array_equal(out, integer_sum(seed, workers, turn, size)), f"turn {turn}"
            assert turn % 2 or np.array_equal(own, kept)

    with job(workers, spin=spin, seed=seed & 0xFFFF, **faults) as (_, members):
        together(members, work)


def test_frames_far_ahead_change_no_sum(seed: int) -> None:
    """Another program sends garbage of far rounds from a member's address, from the first frame on."""

    def work(wid: int, member: AllReducer) -> None:
        for turn in range(12):
            own = integers(seed, wid, turn, 40)
            member.all_reduce(own)
            assert np.array_equal(own, integer_sum(seed, 3, turn, 40)), f"turn {turn}"

    with job(3, seed=seed & 0xFFFF, forge=True) as (relay, members):
        together(members, work)
        assert relay.model.drops[DropReason.BEYOND_WINDOW] > 0


@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.BF16])
def test_floats(dtype: DataType, seed: int) -> None:
    """Bit for bit what the number format says, SAT included."""
    workers, size, exponent = 3, 20, 1
    numbers = np.random.default_rng(seed)
    inputs = [(numbers.standard_normal(size) * 2).astype(np.float32) for _ in range(workers)]
    inputs[1][3] = np.inf

    if dtype == DataType.FP16:
        arrays: list[NDArray[Any]] = [values.astype(np.float16) for values in inputs]
    elif dtype == DataType.BF16:
        arrays = [(values.view(np.uint32) >> 16).astype(np.uint16) for values in inputs]
    else:
        arrays = list(inputs)
    lanes = [formats.quantize(array, dtype, exponent, workers).lanes for array in arrays]
    want = formats.dequantize(formats.add_lanes(lanes), dtype, exponent, workers)
    flags: list[Flag] = [Flag(0)] * workers
    cut = [0] * workers

    def work(wid: int, member: AllReducer) -> None:
        done = member.all_reduce(arrays[wid], exponent)
        flags[wid], cut[wid] = done.flags, done.nonfinite

    with job(workers, seed=1, **WILD) as (_, members):
        together(members, work)
    for array in arrays:
        assert array.tobytes() == np.ascontiguousarray(want).tobytes()
    assert all(f & Flag.SAT for f in flags) and cut == [0, 1, 0]


def test_several_in_flight(seed: int) -> None:
    """Started in one order and waited for in another; more than the slots take."""

    def work(wid: int, member: AllReducer) -> None:
        arrays = [integers(seed, wid, turn, 20) for turn in range(9)]
        running = [member.prepare(array) for array in arrays]
        for reduction in running:
            reduction.start()
        order = list(range(9))
        random.Random(wid).shuffle(order)
        for turn in order:
            running[turn].wait(120)
        for turn, array in enumerate(arrays):
            assert np.array_equal(array, integer_sum(seed, 3, turn, 20))

    with job(3, seed=2, **WILD) as (_, members):
        together(members, work)


def test_a_switch_that_forgets_everything(seed: int) -> None:
    """Registers zero in the middle, the same gen: nothing is lost and no sum is wrong."""

    def work(wid: int, member: AllReducer) -> None:
        for turn in range(60):
            array = integers(seed, wid, turn, 8)
            member.all_reduce(array)
            assert np.array_equal(array, integer_sum(seed, 3, turn, 8))
            if wid == 0 and turn % 10 == 5:
                relay.model.restart()

    with job(3, seed=3, **WILD) as (relay, members):
        together(members, work)


def test_a_missing_worker_is_an_error_not_a_hang() -> None:
    with job(2, timeout=0.3) as (_, members):
        with pytest.raises(EndpointError) as caught:
            members[0].all_reduce(np.ones(8, np.int32))
        assert caught.value.kind == "unreachable" and caught.value.fatal
        with pytest.raises(EndpointError, match="no progress"):
            members[0].all_reduce(np.ones(8, np.int32))
        assert members[0].error is not None and members[1].error is None


def test_a_worker_that_goes_missing_is_an_error_not_a_hang() -> None:
    with job(2, timeout=4.0) as (_, members):
        together(members, lambda _wid, member: member.all_reduce(np.ones(8, np.int32)) and None)
        with pytest.raises(EndpointError, match="another worker") as caught:
            members[0].all_reduce(np.ones(8, np.int32))
        assert caught.value.kind == "stalled" and caught.value.seq is not None


@pytest.mark.sampled(4)
def test_a_pause_of_the_caller_is_not_the_networks(seed: int) -> None:
    """What is waited for was started long ago; only the time spent waiting counts."""
    with job(2, timeout=4.0) as (_, members):
        together(members, lambda _wid, member: member.all_reduce(np.ones(8, np.int32)) and None)
        array = np.ones(8, np.int32)
        late = members[0].prepare(array)
        late.start()
        with pytest.raises(TimeoutError):
            late.wait(0.01)
        assert not threading.Event().wait(4.5)
        other = threading.Thread(target=lambda: members[1].all_reduce(np.ones(8, np.int32)))
        other.start()
        late.wait(60)
        other.join()
        assert array.tolist() == [2] * 8


def test_workers_that_disagree_about_the_numbers() -> None:
    errors: list[EndpointError] = []

    def work(wid: int, member: AllReducer) -> None:
        try:
            member.all_reduce(np.full(8, 0.5, np.float32), (3, 4)[wid])
        except EndpointError as error:
            errors.append(error)
        array = np.full(8, 0.5, np.float32)
        member.all_reduce(array, 5)
        assert array.tolist() == [1.0] * 8

    with job(2) as (_, members):
        together(members, work)
    assert [(error.kind, error.fatal) for error in errors] == [("exponent", False)]


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\x00", "short"),
        (Header(type=PacketType.CNF, version=3, gen=GEN).pack(), "version"),
        (Header(type=PacketType.CNF, flags=0x80, gen=GEN).pack(), "flags"),
        (Header(type=PacketType.CNF, gen=GEN + 1).pack(), "generation"),
        (Header(type=PacketType.PARAM, gen=GEN, lanes=1).pack() + b"x", "type"),
        (Header(type=PacketType.MH, flags=Flag.ACKV, gen=GEN).pack(), "type"),
        (Header(type=PacketType.CNF, gen=GEN, lanes=8).pack(), "lanes"),
        (Header(type=PacketType.CNF, gen=GEN).pack() + b"x", "length"),
        (Header(type=PacketType.FA, gen=GEN, dtype=9, lanes=8).pack() + bytes(32), "dtype"),
        (Header(type=PacketType.FA, gen=GEN, dtype=1, lanes=4).pack() + bytes(32), "lanes"),
        (Header(type=PacketType.FA, gen=GEN, dtype=1, lanes=8).pack() + bytes(31), "length"),
        (Header(type=PacketType.FA, gen=GEN, dtype=1, lanes=8, seq=77).pack() + bytes(32), "ack"),
        (Header(type=PacketType.CNF, gen=GEN, seq=(1 << 32) - 8).pack(), "duplicate"),
    ],
)
def test_bad_frames_are_counted_and_change_nothing(frame: bytes, reason: str) -> None:
    def work(wid: int, member: AllReducer) -> None:
        for turn in range(3):
            if wid == 0:
                relay.send_as_switch(member.local, frame)
            array = np.full(8, turn + wid, np.int32)
            member.all_reduce(array)
            assert array.tolist() == [2 * turn + 1] * 8

    with job(2) as (relay, members):
        together(members, work)
        assert members[0].stats()["rejects"][reason] >= 1, members[0].stats()["rejects"]


@pytest.mark.parametrize(
    "options",
    [
        {"wid": 2},
        {"wid": -1},
        {"timeout": 0},
        {"spin": -1},
        {"window": 0},
        {"window": 5},
        {"local": ("nowhere", 1)},
        {"switch": ("127.0.0.1", 0)},
    ],
)
def test_bad_arguments(options: dict[str, Any]) -> None:
    good = {"stream": Stream(gen=1, workers=2, slots=4), "wid": 0, "local": LOCAL, "switch": ("127.0.0.1", 9)}
    with pytest.raises(EndpointError) as caught:
        AllReducer(**{**good, **options})
    assert caught.value.kind == "argument" and caught.value.hint


def test_bad_buffers() -> None:
    switch: Address = ("127.0.0.1", 9)
    with AllReducer(stream=Stream(gen=1, workers=1, lanes=8), wid=0, local=LOCAL, switch=switch) as member:
        for array, exponent, out in [
            (np.zeros(0, np.int32), None, None),
            (np.zeros(8, np.int64), None, None),
            (np.zeros(8, np.float32), None, None),
            (np.zeros(8, np.float32), 200, None),
            (np.zeros((8, 2), np.int32)[:, 0], None, None),
            (np.zeros(8, np.int32), None, np.zeros(7, np.int32)),
            (np.zeros(8, np.int32), None, np.zeros(8, np.float32)),
            (b"read only", None, None),
        ]:
            with pytest.raises(EndpointError) as caught:
                member.prepare(array, exponent, out)
            assert caught.value.kind == "argument"


def test_closed(seed: int) -> None:
    with job(2) as (_, members):
        late = members[0].prepare(np.ones(8, np.int32))
        late.start()
        with pytest.raises(RuntimeError, match="under way"):
            late.start()
        members[0].close(0.05)
        with pytest.raises(EndpointError) as caught:
            late.wait()
        assert caught.value.kind == "closed"
        members[0].close()


def test_an_interrupt_lets_go_of_who_waits_and_closing_gives_the_port_back() -> None:
    with job(2, timeout=60.0) as (_, members):
        member = members[0]
        kinds: list[str] = []

        def work() -> None:
            try:
                member.all_reduce(np.ones(8, np.int32))
            except EndpointError as error:
                kinds.append(error.kind)

        waiting = threading.Thread(target=work)
        waiting.start()
        pause = threading.Event()
        while not member.stalled():
            pause.wait(0.01)
        (stall,) = member.stalled()
        assert stall.seq == (1 << 32) - 7
        assert stall.seconds >= 1.0
        member.interrupt()
        waiting.join(120)
        member.close(0.0)
        assert kinds == ["closed"]
        assert member.stalled() == ()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
            again.bind(member.local)
        with pytest.raises(EndpointError, match="interrupted"):
            member.all_reduce(np.ones(8, np.int32))


def test_who_only_looks_runs_the_protocol(seed: int) -> None:
    """Nobody else would: neither for a sum nor for the time after which there is none."""
    with job(2) as (_, members):
        reduction = members[0].prepare(array := integers(seed, 0, 0, 100))
        reduction.start()
        other = threading.Thread(target=members[1].all_reduce, args=(integers(seed, 1, 0, 100),))
        other.start()
        wait_without_time(reduction)
        other.join(120)
        assert np.array_equal(array, integer_sum(seed, 2, 0, 100))
    with job(2, timeout=0.5) as (_, members):
        alone = members[0].prepare(np.ones(8, np.int32))
        alone.start()
        with pytest.raises(EndpointError, match="no progress"):
            wait_without_time(alone)


def wait_without_time(reduction: Any) -> None:
    """Look whether it is done until it is, for two minutes."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with contextlib.suppress(TimeoutError):
            reduction.wait(0.0)
            return
    raise AssertionError("it is never done")


def test_memory_outlives_its_owner(seed: int) -> None:
    """A reduction that is dropped under way is finished later into memory that is still there."""
    with job(2) as (_, members):
        for _ in range(5):
            members[0].prepare(np.ones(8, np.int32)).start()
        array = np.full(8, 5, np.int32)

        def work(wid: int, member: AllReducer) -> None:
            for turn in range(6 if wid else 1):
                member.all_reduce(array if not wid else np.full(8, turn, np.int32))

        together(members, work)
        assert array.tolist() == [10] * 8


def test_ctrl_c_ends_a_wait() -> None:
    with job(2) as (_, members):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  it may come before the wait has begun
            timer.start()
            members[0].all_reduce(np.ones(8, np.int32))
        timer.join()


def test_a_child_is_refused() -> None:
    with job(1) as (_, members):
        reduction = members[0].prepare(np.ones(8, np.int32))
        reduction.run()
        child = os.fork()
        if child == 0:
            try:
                reduction.run()
            except RuntimeError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        reduction.run()


def test_another_thread_sees_that_it_stands_still_and_ends_it() -> None:
    """What a membership does when the controller replaces the generations."""
    with job(2) as (_, members):
        member = members[0]
        assert member.stalled() == ()
        failures: list[EndpointError] = []

        def wait_alone() -> None:
            try:
                member.all_reduce(np.ones(8, np.int32))
            except EndpointError as error:
                failures.append(error)

        thread = threading.Thread(target=wait_alone)
        thread.start()
        while not (stalls := member.stalled()):
            thread.join(0.01)
            assert thread.is_alive(), failures
        assert stalls[0].stream == "sums"
        assert stalls[0].seconds >= 1.0
        assert stalls[0].seq == (1 << 32) - 7
        member.interrupt()
        thread.join(120)
        assert [error.kind for error in failures] == ["closed"]
        assert "interrupted" in str(failures[0])
        with pytest.raises(EndpointError, match="interrupted"):
            member.all_reduce(np.ones(8, np.int32))


def test_its_port_is_free_once_it_is_closed() -> None:
    with job(1) as (relay, (member,)):
        member.all_reduce(np.ones(8, np.int32))
        address = member.local
        member.close()
        member.close()
        with pytest.raises(EndpointError, match="closed"):
            member.all_reduce(np.ones(8, np.int32))
        assert member.stats()["frames_sent"] > 0
        stream = Stream(gen=GEN, workers=1, slots=4, lanes=8)
        AllReducer(stream=stream, wid=0, local=address, switch=relay.address).close()
