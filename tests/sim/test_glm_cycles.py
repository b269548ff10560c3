"""The cycle model: the paper's ideal clocks, its equations by hand, and the pipeline against a slow simulation."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from host.glm.shares import Shares
from sim.golden import glm_cycles as cycles

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
            # Forward propagation goes through without a pause: find its earliest start.
            start = forward
            for chunk in range(slots):
                start = max(start, written[chunk] - chunk * bits)
            ahead = max(p.replay_words, slots * bits)
            for word in range(slots * bits):
                if pushed + word >= ahead:
                    start = max(start, replay[pushed + word - ahead] - word)
            pushed += slots * bits
            forward = start + slots * bits + p.gap
            leaves = max(start + slots * bits + p.forward, slot_free[rounds % p.window])
            slot_free[rounds % p.window] = leaves + 2 * all_reduce + p.confirm
            rounds += 1
            begin = max(backward, leaves + all_reduce + p.backward)
            backward = begin + slots * bits + p.gap
            replay += [begin + word for word in range(slots * bits)]
            if k == size - 1:
                written = [begin + (chunk + 1) * bits + p.update for chunk in range(slots)]
        done.append(p.start + max(written))
    return done


def test_the_pipeline_is_what_tokens_do(rng: random.Random) -> None:
    for _ in range(50):
        pipeline = cycles.Pipeline(
            forward=rng.randrange(40),
            backward=rng.randrange(40),
            update=rng.randrange(20),
            gap=rng.randrange(3),
            row_clocks=1,
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


def test_rows_bound_low_precisions() -> None:
    slow = replace(cycles.Pipeline(), row_clocks=4)
    two, four = (cycles.mini_batches([4, 4], 10, bits, 0, slow) for bits in (2, 4))
    # Twice a mini-batch the last chunk's last two clocks have no plane to wait for.
    assert [after - before for before, after in zip(two, four, strict=True)] == [4, 8]
    assert cycles.mini_batch_sizes(65, 32) == [4, 4, 1]
