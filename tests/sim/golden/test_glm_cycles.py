"""The cycle model: the paper's ideal clocks, its equations by hand, and the pipeline against a slow simulation."""

from __future__ import annotations

import math
import random

import pytest

from catchment.host.glm.shares import Shares
from catchment.sim.golden import glm_cycles as cycles

GISETTE, REAL_SIM, RCV1, AMAZON, AVAZU = cycles.PAPER_WORKLOADS


@pytest.mark.parametrize(
    ("workload", "clocks"), [(GISETTE, 8), (REAL_SIM, 24), (RCV1, 48), (AMAZON, 328), (AVAZU, 980)]
)
def test_a_micro_batch_takes_the_ideal_clocks(workload: cycles.Workload, clocks: int) -> None:
    setting = cycles.Setting()
    assert cycles.pass_clocks(setting.shares(workload), setting.bits) == clocks
    assert clocks == -(-workload.features // 4096) * 4


def test_table_1() -> None:
    setting = cycles.Setting(workers=4, batch=16)
    model, data = (cycles.memory(RCV1, setting, data_parallel=each) for each in (False, True))
    assert (model.model, model.network) == (47_236 / 4, 16)
    assert (data.model, data.network) == (47_236, 47_236)
    assert model.dataset == data.dataset == 20_242 * 47_236 / 4


def test_equations_by_hand() -> None:
    """rcv1, 4 workers of 8 engines, 4 bits, B = 16: 24 chunks an engine, 93 data-parallel."""
    setting, network = cycles.Setting(workers=4, batch=16), cycles.Network(1e-6, 100e9)
    pass_model, pass_data = 24 * 4 / 250e6, 93 * 4 / 250e6
    assert cycles.micro_batch_iteration(RCV1, setting, network) == pytest.approx(3 * pass_model + 256 / 100e9 + 1e-6)
    assert cycles.vanilla_iteration(RCV1, setting, network) == pytest.approx(4 * pass_model + 512 / 100e9 + 1e-6)
    gradient = 47_236 * 32 / 100e9
    assert cycles.data_parallel_iteration(RCV1, setting, network) == pytest.approx(2 * pass_data + gradient + 1e-6)


@pytest.mark.parametrize("workload", cycles.PAPER_WORKLOADS)
def test_the_paper_s_orderings(workload: cycles.Workload) -> None:
    for batch in (16, 64, 256):
        setting = cycles.Setting(workers=4, batch=batch)
        micro, vanilla, data = (
            each(workload, setting)
            for each in (cycles.micro_batch_iteration, cycles.vanilla_iteration, cycles.data_parallel_iteration)
        )
        assert micro < vanilla and micro < data
        assert cycles.steady_iteration(workload, setting, cycles.Pipeline(0, 0, 0)) <= micro + 5 / cycles.CLOCK_HZ


def _clock_by_clock(sizes: list[int], slots: int, bits: int, all_reduce: int, p: cycles.Pipeline) -> list[int]:
    """The same machine as tokens: a plane at a time, chunk by chunk, with explicit memories."""
    written = [0] * slots  # when each chunk's weights can be read
    replay: list[int] = []  # clock at which each word leaves the replay memory
    slot_free = [0] * p.window  # when each slot of the all-reduce is confirmed
    rounds = 0
    forward, backward, done, pushed = 0, 0, [], 0
    for size in sizes:
        for k in range(size):
            ahead = max(p.replay_words, slots * bits)
            now = forward
            for word in range(slots * bits):
                now = max(now, written[word // bits])
                if pushed >= ahead:
                    now = max(now, replay[pushed - ahead])
                pushed += 1
                now += 1
            forward = now + p.gap
            leaves = max(now + p.forward, slot_free[rounds % p.window])
            slot_free[rounds % p.window] = leaves + 2 * all_reduce + p.confirm
            rounds += 1
            last = k == size - 1
            now = begin = max(backward, leaves + all_reduce + p.backward)
            for chunk in range(slots):
                replay += [now + bit for bit in range(bits)]
                if last:
                    written[chunk] = now + bits + p.update
                now += max(bits, p.row_clocks) if last else bits
            backward = max(now, begin + p.row_clocks) + p.gap
        done.append(p.start + max(written) + p.row_clocks - 1)
    return done


def test_the_pipeline_is_what_tokens_do(rng: random.Random) -> None:
    for _ in range(50):
        pipeline = cycles.Pipeline(
            forward=rng.randrange(40),
            backward=rng.randrange(40),
            update=rng.randrange(20),
            gap=rng.randrange(3),
            row_clocks=rng.choice([1, 4]),
            replay_words=rng.choice([16, 50, 64, 99, 256, 8192]),
            window=rng.choice([1, 2, 4, 64]),
            confirm=rng.randrange(12),
        )
        sizes = [rng.randint(1, 6) for _ in range(rng.randint(1, 6))]
        given = (sizes, rng.randint(1, 12), rng.randint(1, 8), rng.randrange(300), pipeline)
        assert cycles.mini_batches(*given) == _clock_by_clock(*given), given


def test_a_long_mini_batch_costs_its_passes_alone() -> None:
    """What the all-reduce takes disappears behind other micro-batches, and is paid once a mini-batch."""
    pipeline = cycles.Pipeline()
    slots = Shares(332_710, 8, 8).engine_chunks
    done = cycles.mini_batches([8] * 6, slots, 4, 300, pipeline)
    once = 300 + pipeline.forward + pipeline.backward + pipeline.update + 4
    assert done[-1] - done[-2] == 8 * slots * 4 + once
    longer = cycles.mini_batches([128] * 4, slots, 4, 300, pipeline)
    assert (longer[-1] - longer[-2]) / (128 * slots * 4) < 1.01


def test_what_settled_windows_add_is_what_every_micro_batch_by_itself_adds(rng: random.Random) -> None:
    for _ in range(6):
        workload, setting = (
            cycles.Workload("", 1, rng.choice([1, 1000, 100_000])),
            cycles.Setting(workers=rng.randint(1, 8), bits=rng.randint(1, 8), batch=rng.randrange(16_400, 40_000, 8)),
        )
        pipeline = cycles.Pipeline(
            gap=rng.randrange(3),
            replay_words=rng.choice([16, 99, 8192]),
            window=rng.choice([1, 6, 64]),
            confirm=rng.randrange(12),
        )
        seconds = rng.choice([0, 1e-7, 1e-6, 1e-5])
        network = cycles.Network(seconds, math.inf)
        slots = setting.shares(workload).engine_chunks
        sizes, all_reduce = [setting.batch // 8] * 8, round(seconds * cycles.CLOCK_HZ)
        done = cycles.mini_batches(sizes, slots, setting.bits, all_reduce, pipeline)
        expected = (done[-1] - done[-5]) / 4 / cycles.CLOCK_HZ
        given = (workload, setting, pipeline, network)
        assert cycles.steady_iteration(*given) == pytest.approx(expected, rel=1e-12), given


def test_low_precisions_take_their_bits_but_for_updates() -> None:
    """The last micro-batch's backward propagation of a mini-batch is bound by rows, and the first one's forward."""
    pipeline = cycles.Pipeline()
    for bits in (1, 2, 3):
        few, more = (cycles.mini_batches([size] * 6, 10, bits, 0, pipeline) for size in (40, 41))
        assert (more[-1] - more[-2]) - (few[-1] - few[-2]) == 10 * bits
        alone, four = (cycles.mini_batches([1, 1], 10, b, 0, pipeline) for b in (bits, 4))
        assert (four[1] - four[0]) - (alone[1] - alone[0]) <= 2 * (4 - bits)


def test_sizes_of_mini_batches() -> None:
    assert cycles.mini_batch_sizes(65, 32) == [4, 4, 1]
