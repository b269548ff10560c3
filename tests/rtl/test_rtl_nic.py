"""Whole NICs around p4src/luwu.p4: arrays in one host's memory, their sums and copies in others', bit for bit."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import transport_nic
from nic_lab import WORDS, Host, Lab
from numpy.typing import NDArray
from transport_frames import sum_frame
from transport_network import CALM, ROOT_PORT, Job, embedded_switch, mac_of, model_switch, settings_of, some_faults

from catchment.rtl.driver.bus import BusError
from catchment.rtl.driver.errors import NicError
from catchment.rtl.driver.memory import PAGE, PinnedMemory
from catchment.rtl.driver.nic import Nic
from catchment.rtl.driver.request import Request, RequestError
from catchment.rtl.generated import nic_regs as regs
from catchment.rtl.harness.verilated_nic import Pace
from catchment.sim.golden import formats
from catchment.sim.world import Faults
from catchment.sim.world.star import Hops
from catchment.wire.generated.constants import DataType, Flag, Mode

FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
BASES = (0, 0xFFFF_FFF0, 0x7FFF_FFE0)
UP, DOWN = 7, 8


def values(worker: int, index: int, count: int, dtype: DataType, *, bad: bool = False) -> NDArray[Any]:
    """Different for every worker, message and element; with `bad`, some NaN, infinities and numbers beyond E."""
    numbers = np.random.default_rng([worker, index])
    if dtype == DataType.INT32:
        return numbers.integers(-(1 << 31), 1 << 31, count).astype(np.int32)
    real = numbers.normal(size=count).astype(np.float32)
    if bad:
        real[numbers.integers(0, count, 3)] = [np.nan, np.inf, -3e4]
    return formats.bf16_words(real) if dtype == DataType.BF16 else real.astype(WORDS[dtype])


def summed(parts: list[NDArray[Any]], pushed: DataType, exponent: int, pulled: DataType) -> bytes:
    """What the receivers must get."""
    lanes = [formats.quantize(part, pushed, exponent, len(parts)).lanes for part in parts]
    with np.errstate(over="ignore"):
        return formats.dequantize(formats.add_lanes(lanes), pulled, exponent, len(parts)).tobytes()


def lab(rng: random.Random, workers: int, *, hops: Hops, all_reduce: bool = False, **more: Any) -> Lab:
    mode = Mode.ALLREDUCE if all_reduce else Mode.REDUCE
    up = Job(UP, mode, workers, slots=64, base_slot=0, row=0)
    down = Job(DOWN, Mode.BCAST, workers, slots=64, base_slot=64, row=1)
    inject = embedded_switch(up) if all_reduce else embedded_switch(up, down)
    return Lab(inject, up, down, rng, hops, all_reduce=all_reduce, **more)


def plan(rng: random.Random, count: int) -> list[tuple[DataType, DataType, int, int]]:
    """(pushed type, pulled type, exponent, elements) of each message."""
    jobs = []
    for _ in range(count):
        pushed = rng.choice([*FLOATS, DataType.INT32])
        pulled = DataType.INT32 if pushed == DataType.INT32 else rng.choice([*FLOATS, DataType.INT32])
        jobs.append((pushed, pulled, rng.randrange(-4, 8), rng.choice([1, 33, 64, 65, 200, rng.randrange(1, 1500)])))
    return jobs


def check(pull: Request, expected: bytes, flags: Flag) -> None:
    completion = pull.check()
    assert pull.buffer.bytes.tobytes() == expected
    assert completion.flags == flags


@pytest.mark.sampled(4)
@pytest.mark.parametrize("workers", [2, 3])
def test_gradients_up_and_parameters_down_under_any_faults(workers: int, rng: random.Random) -> None:
    hops = some_faults(rng)
    pace = rng.choice([Pace(), Pace(60, 60, 60, 60, 60, 60)])
    with lab(rng, workers, hops=hops, base_seq=rng.choice(BASES), pace=pace) as there:
        jobs = plan(rng, 6)
        sums, pushes, copies = [], [], []
        for index, (pushed, pulled, exponent, count) in enumerate(jobs):
            parts = [values(w, index, count, pushed, bad=index % 3 == 1) for w in range(workers)]
            pushes += [there.hosts[w].push(part, pushed, exponent) for w, part in enumerate(parts)]
            quantized = [formats.quantize(part, pushed, exponent, workers) for part in parts]
            expected = summed(parts, pushed, exponent, pulled)
            cut = any(q.saturated for q in quantized)
            sums.append((there.root().pull(len(expected), pulled), expected, Flag.SAT if cut else Flag(0)))
            for request, q in zip(pushes[-workers:], quantized, strict=True):
                copies.append((request, q.saturated, q.nonfinite))
        down = []
        for index in range(4):
            raw = np.random.default_rng([99, index]).bytes(rng.choice([1, 256, 257, 1000, 2048]))
            pushes.append(there.root().push(raw, DataType.BYTES))
            down += [(host.pull(len(raw), DataType.BYTES), raw) for host in there.workers()]
        there.finish([*pushes, *(s[0] for s in sums), *(d[0] for d in down)])
        for pull, expected, flags in sums:
            check(pull, expected, flags)
        for pull, raw in down:
            check(pull, raw, Flag(0))
        for request, saturated, nonfinite in copies:
            completion = request.check()
            assert (completion.saturated, completion.nonfinite) == (saturated, nonfinite)
        root = there.root().driver
        assert root.statistic(regs.HostStatistic.PULLS) == len(sums)
        assert root.statistic(regs.HostStatistic.STATUS, regs.Status.OK) == len(sums) + 4
        assert root.statistic(regs.HostStatistic.PULL_BYTES) == sum(len(expected) for _, expected, _ in sums)
        least = root.statistic(regs.HostStatistic.PULL_LATENCY_MIN)
        most = root.statistic(regs.HostStatistic.PULL_LATENCY_MAX)
        total = root.statistic(regs.HostStatistic.PULL_LATENCY_SUM)
        assert 0 < least <= total / len(sums) <= most


def test_all_reduce_gives_everyone_the_sum(rng: random.Random) -> None:
    workers = 3
    with lab(rng, workers, hops=some_faults(rng), all_reduce=True, base_seq=rng.choice(BASES)) as there:
        pulls, pushes = [], []
        for index, (pushed, pulled, exponent, count) in enumerate(plan(rng, 5)):
            parts = [values(w, index, count, pushed) for w in range(workers)]
            expected = summed(parts, pushed, exponent, pulled)
            flags = (
                Flag.SAT if any(formats.quantize(p, pushed, exponent, workers).saturated for p in parts) else Flag(0)
            )
            for host, part in zip(there.workers(), parts, strict=True):
                pushes.append(host.push(part, pushed, exponent))
                pulls.append((host.pull(len(expected), pulled), expected, flags))
        there.finish([*pushes, *(pull for pull, *_ in pulls)])
        for pull, expected, flags in pulls:
            check(pull, expected, flags)


def test_a_soft_reset_in_the_middle_and_a_new_generation(rng: random.Random) -> None:
    """Frames are cut, requests vanish, the streams end; the next generation is whole."""
    workers = 2
    generations = [(UP + 10 * i, DOWN + 10 * i) for i in range(4)]
    jobs = []
    for i, (up, down) in enumerate(generations):
        jobs += [
            Job(up, Mode.REDUCE, workers, slots=64, base_slot=64 * (2 * i % 4), row=2 * i),
            Job(down, Mode.BCAST, workers, slots=64, base_slot=64 * ((2 * i + 1) % 4), row=2 * i + 1),
        ]
    inject = model_switch(*jobs)
    with Lab(inject, jobs[0], jobs[1], rng, Hops(Faults(loss=0.02), CALM.hop), pace=Pace(tx_stall=100)) as there:
        for up, down in generations[1:]:
            for host in there.workers():
                host.push(values(0, 0, 4096, DataType.FP32), DataType.FP32, 3)
                host.pull(4096, DataType.BYTES)
            there.root().push(bytes(4096), DataType.BYTES)
            for _ in range(rng.randrange(1, 60)):
                there.network.advance()
            for port, host in there.hosts.items():
                before = host.port.nic.memory_counts()["broken_laws"]
                host.driver.soft_reset()
                state = host.driver.get(regs.STATE)
                assert not state["tx_ready"] and not state["rx_ready"] and before == 0
                assert host.driver.statistic(regs.HostStatistic.PUSHES) == 0
                there.begin(port, up, down)
            parts = [values(w, up, 700, DataType.BF16) for w in range(workers)]
            pushes = [h.push(p, DataType.BF16, 3) for h, p in zip(there.workers(), parts, strict=True)]
            pull = there.root().pull(2800, DataType.FP32)
            raw = rng.randbytes(3000)
            pushes.append(there.root().push(raw, DataType.BYTES))
            copies = [host.pull(3000, DataType.BYTES) for host in there.workers()]
            there.finish([*pushes, pull, *copies])
            check(pull, summed(parts, DataType.BF16, 3, DataType.FP32), Flag(0))
            for copy in copies:
                check(copy, raw, Flag(0))
        cut = sum(host.port.cut for host in there.hosts.values())
        assert cut == sum(host.driver.get(regs.STATE)["frames_cut"] for host in there.hosts.values())


def test_bad_requests_registers_and_frames_are_counted_and_nothing_stops(rng: random.Random) -> None:
    with lab(rng, 1, hops=CALM) as there:
        worker, root = there.hosts[0], there.root()
        driver = worker.driver
        driver.enable_irq("missed", "refused")
        # Requests.
        raw = worker.memory.allocate(64)
        empty = driver.push(replace(raw, bytes=raw.bytes[:0]), DataType.FP32)
        odd = driver.push(replace(raw, bytes=raw.bytes[:3]), DataType.FP32)
        wrong = driver.push(raw, DataType.BYTES)
        away = driver.push(replace(raw, virtual=0x1234 << 21), DataType.FP32)
        there.finish([empty, odd, wrong, away])
        bad = (regs.Status.BAD_LENGTH, regs.Status.BAD_LENGTH, regs.Status.BAD_TYPE, regs.Status.UNMAPPED)
        for request, status in zip((empty, odd, wrong, away), bad, strict=True):
            with pytest.raises(RequestError, match=status.name):
                request.check()
        assert driver.statistic(regs.HostStatistic.STATUS, regs.Status.BAD_LENGTH) == 2
        assert driver.statistic(regs.HostStatistic.PUSH_MISSES) == 1
        assert driver.get(regs.PUSH_MISSED)["value"] == 0x1234 << 21
        assert worker.port.nic.irq
        assert driver.take_irq() == {"missed", "push_done"}
        worker.port.run(4)
        assert not worker.port.nic.irq
        # A full queue.
        for _ in range(40):
            driver.set(regs.PULL_RING, value=1)
        worker.port.run(100)
        refused = driver.statistic(regs.HostStatistic.PULL_REFUSED)
        gone = driver.statistic(regs.HostStatistic.PULL_UNANSWERABLE)
        assert refused + gone == 40, "the pulls name no completion record, and so are dropped or refused"
        # Frames: noise, and a good one damaged.
        for _ in range(20):
            worker.port.receive(rng.randbytes(rng.choice([1, 14, 42, 64, 65, 320, 1500])))
        worker.port.nic.receive(mac_of(0).to_bytes(6, "big") + rng.randbytes(300), damaged=True)
        worker.port.run(2000)
        counts = driver.statistics()
        assert sum(count for name, count in counts.items() if name.startswith("rejects.")) == 21
        assert counts["rejects.fcs"] == 1 and counts["rx_frames"] == 21
        # And it works.
        part = values(0, 0, 300, DataType.FP32)
        push, pull = worker.push(part, DataType.FP32, 3), root.pull(1200, DataType.FP32)
        there.finish([push, pull])
        check(pull, summed([part], DataType.FP32, 3, DataType.FP32), Flag(0))


def test_memory_that_fails_is_told_in_the_completion(rng: random.Random) -> None:
    with lab(rng, 1, hops=CALM) as there:
        worker, root = there.hosts[0], there.root()
        push = worker.push(values(0, 0, 1024, DataType.FP32), DataType.FP32, 3)
        offset = push.buffer.virtual - worker.memory.virtual
        worker.port.nic.fail_memory((1 << 32) + offset + 128, (1 << 32) + offset + 192)
        pull = root.pull(4096, DataType.FP32)
        there.finish([push, pull])
        assert push.completion.status == regs.Status.BUS_ERROR
        assert pull.completion.status == regs.Status.OK, "the root cannot know"
        assert worker.driver.statistic(regs.HostStatistic.BUS_ERRORS) == 1


def test_a_soft_reset_while_the_link_stands_still_ends_the_cut_frame(rng: random.Random) -> None:
    with lab(rng, 1, hops=CALM) as there:
        worker = there.hosts[0]
        nic = worker.port.nic
        # 32 different places: before, inside and between the beats of frames.
        for clocks in range(40, 72):
            nic.pace(Pace(latency=4))
            part = values(0, clocks, 640, DataType.FP32)
            worker.push(part, DataType.FP32, 3)
            nic.run(clocks)
            nic.pace(Pace(latency=4, tx_stall=256))
            nic.run(200)
            worker.driver.soft_reset()
            nic.pace(Pace(latency=4))
            nic.run(100)
            frames = nic.frames()
            assert sum(frame.cut for frame in frames) <= 1
            assert all(len(frame.data) in (64, 320) for frame in frames if not frame.cut)
            assert all(frame.cut == (frame is frames[-1]) for frame in frames if frame.cut or len(frame.data) % 64)
            there.begin(0, UP, DOWN)
            worker.port.cut += sum(frame.cut for frame in frames)
        assert worker.port.cut == worker.driver.get(regs.STATE)["frames_cut"] > 0


def sums_to_the_root(there: Lab, seq: int, **fields: int) -> bytes:
    """A frame as the switch would send it."""
    stream = transport_nic.StreamSettings(gen=UP)
    lanes = [seq * 1000 + lane for lane in range(64)]
    return sum_frame(settings_of(ROOT_PORT, stream, stream), seq, lanes, **fields)


def test_a_soft_reset_in_the_middle_of_a_frame_drops_its_rest_alone(rng: random.Random) -> None:
    with lab(rng, 1, hops=CALM) as there:
        root = there.root()
        nic = root.port.nic
        for clocks in range(1, 12):
            nic.pace(Pace(rx_idle=0))
            nic.receive(sums_to_the_root(there, 0, flags=Flag.LAST))
            nic.run(1)
            nic.pace(Pace(rx_idle=200))
            nic.run(clocks)
            root.driver.soft_reset()
            nic.pace(Pace())
            nic.run(50)
            there.begin(ROOT_PORT, UP, DOWN)
            nic.receive(sums_to_the_root(there, 0, flags=Flag.LAST))
            pull = root.pull(256, DataType.INT32)
            there.finish([pull])
            check(pull, np.arange(64, dtype=np.int32).tobytes(), Flag(0))
            rejects = {name for name, n in root.driver.statistics().items() if name.startswith("rejects.") and n}
            # Heartbeats of the worker come before the streams have begun again.
            assert rejects <= {"rejects.generation"}


def test_an_exponent_that_changes_within_a_message_fails_the_pull(rng: random.Random) -> None:
    with lab(rng, 1, hops=CALM) as there:
        root = there.root()
        for seq, (exponent, flags) in enumerate([(3, 0), (4, 0), (3, Flag.LAST), (5, Flag.LAST)]):
            root.port.receive(sums_to_the_root(there, seq, exp=exponent, flags=flags))
        mixed, whole = root.pull(768, DataType.FP32), root.pull(256, DataType.FP32)
        there.finish([mixed, whole])
        assert mixed.completion.status == regs.Status.EXPONENT_MISMATCH and mixed.completion.moved == 256
        assert mixed.buffer.bytes[256:].tobytes() == b"\xa5" * 512
        assert whole.check().exponent == 5


@pytest.mark.parametrize("packed", [False, True])
def test_sums_of_other_lanes_fail_their_pull_and_the_next_is_served(packed: bool, rng: random.Random) -> None:
    """A sum whose flag is not the stream's, and one of lanes that were not the same at all workers."""
    own = Flag.PACKED if packed else 0
    other = Flag.PACKED ^ own
    with lab(rng, 1, hops=CALM, packed=packed) as there:
        root = there.root()
        flags = [own, other, own | Flag.LAST, own | Flag.MIXED | Flag.LAST, own | Flag.LAST]
        for seq, each in enumerate(flags):
            root.port.receive(sums_to_the_root(there, seq, flags=each))
        vector = 512 if packed else 256
        pulls = [root.pull(n * vector, DataType.FP32) for n in (3, 1, 1)]
        there.finish(pulls)
        statuses = [pull.completion.status for pull in pulls]
        assert statuses == [regs.Status.LANES_MISMATCH, regs.Status.LANES_MISMATCH, regs.Status.OK]
        assert pulls[0].completion.moved == vector and pulls[1].completion.moved == 0
        assert pulls[0].buffer.bytes[vector:].tobytes() == b"\xa5" * 2 * vector


def test_a_register_that_is_not_there_is_an_error(rng: random.Random) -> None:
    with lab(rng, 1, hops=CALM) as there:
        nic = there.hosts[0].port.nic
        for address in (0x02C, 0x800, 0xFFC):
            with pytest.raises(BusError, match="error 2"):
                nic.read(address)
        with pytest.raises(BusError, match="error 2"):
            nic.write(regs.ID.address, 1)
        with pytest.raises(BusError, match="error 2"):
            nic.write(regs.STATISTICS.address, 1)
        with pytest.raises(BusError, match="error 2"):
            nic.write(regs.TX_GEN.address, 1)  # its stream is on
        there.hosts[0].port.run(100)
        assert there.hosts[0].driver.statistic(regs.HostStatistic.REGISTER_ERRORS) == 6
        nic.write(regs.RTO.address, 0xAABB_CCDD)
        nic.write(regs.RTO.address, 0x1122_3344, strobes=0b0101)
        assert nic.read(regs.RTO.address) == 0xAA22_CC44


def test_the_driver_refuses_what_is_no_nic_and_memory_that_does_not_fit(rng: random.Random) -> None:
    class Nothing:
        def read(self, address: int) -> int:
            return 0xFFFF_FFFF

        def write(self, address: int, value: int) -> None:
            raise AssertionError("written to what is no NIC")

        def relax(self) -> None: ...

    memory = PinnedMemory(np.zeros(PAGE, np.uint8), 0, (0,))
    with pytest.raises(NicError, match="no NIC of ours"):
        Nic(Nothing(), memory)
    with pytest.raises(NicError, match="whole pages"):
        PinnedMemory(np.zeros(PAGE + 1, np.uint8), 0, (0,))
    with pytest.raises(NicError, match="not on a page"):
        PinnedMemory(np.zeros(PAGE, np.uint8), 64, (0,))
    first, second = memory.allocate(100), memory.allocate(PAGE - 128)
    with pytest.raises(NicError, match="largest piece has 0"):
        memory.allocate(1)
    memory.release(second)
    memory.release(first)
    with pytest.raises(NicError, match="release it once"):
        memory.release(first)
    assert memory.allocate(PAGE).bytes.size == PAGE


def stalls(host: Host) -> dict[str, int]:
    """What the counters of stalls have gone on by, of those that did, since they were read last."""
    names = ("PUSH_MEMORY", "PUSH_TRANSPORT", "PULL_WAIT", "VECTOR_WAIT", "PULL_MEMORY")
    host.port.run(64)
    found = {name: host.driver.statistic(regs.HostStatistic[f"{name}_CLOCKS"]) for name in names}
    return {name: count for name, count in found.items() if count}


def test_stalls_are_counted_by_their_cause(rng: random.Random) -> None:
    """Each with all others away: what a NIC waits for is made to last, and a reset begins the counters anew."""
    with lab(rng, 1, hops=CALM) as there:
        worker, root = there.hosts[0], there.root()

        def fresh() -> None:
            for port, host in there.hosts.items():
                host.port.nic.pace(Pace())
                host.driver.soft_reset()
                there.begin(port, UP, DOWN)

        root.pull(4096, DataType.FP32)
        root.port.run(2000)
        assert 1900 < stalls(root)["PULL_WAIT"] <= 2100 and len(stalls(root)) == 1
        fresh()
        for seq in range(32):
            root.port.receive(sums_to_the_root(there, seq, flags=Flag.LAST if seq == 31 else 0))
        root.port.run(2000)
        assert 1900 < stalls(root)["VECTOR_WAIT"] <= 2100 and len(stalls(root)) == 1
        root.port.nic.pace(Pace(write_stall=256))
        pull = root.pull(32 * 256, DataType.FP32)
        root.port.run(2000)
        assert 1600 < stalls(root)["PULL_MEMORY"] <= 2100, "more beats than find room beside memory"
        root.port.nic.pace(Pace())
        there.finish([pull])
        fresh()
        worker.port.nic.pace(Pace(latency=2000))
        worker.push(values(0, 0, 16, DataType.FP32), DataType.FP32, 3)
        worker.port.run(1900)
        assert 1700 < stalls(worker)["PUSH_MEMORY"] <= 1964 and len(stalls(worker)) == 1
        fresh()
        worker.port.nic.pace(Pace(tx_stall=256))
        worker.push(values(0, 0, 64 * 1100, DataType.FP32), DataType.FP32, 3)
        worker.port.run(9000)
        before = stalls(worker)
        worker.port.run(2000)
        after = stalls(worker)
        assert after["PUSH_TRANSPORT"] - before["PUSH_TRANSPORT"] >= 2000
        assert after["PUSH_MEMORY"] == before["PUSH_MEMORY"] and len(after) == 2
