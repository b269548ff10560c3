"""Endpoints of LuWu and workers of P4SGD that run the switch's program themselves: no frame needs its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from catchment.sim.golden import formats
from catchment.sim.lab.shm_lab import IN_CALLERS, P4SGD, ShmLab

PATIENCE = 60.0
WORKERS = ("w0", "w1", "w2")
ROUNDS = 5


@contextmanager
def stopped(lab: ShmLab) -> Iterator[None]:
    """Stop the switch's process for the length of a block."""
    os.kill(lab.switch.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(lab.switch.pid, signal.SIGCONT)


def test_gradients_and_parameters_pass_while_the_switch_s_process_is_stopped(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    with ShmLab((*WORKERS, "opt"), in_callers=True) as lab:
        job = lab.luwu(WORKERS, root="opt", slots=32)
        with (
            lab.endpoint(job, "w0") as w0,
            lab.endpoint(job, "w1") as w1,
            lab.endpoint(job, "w2") as w2,
            lab.endpoint(job, "opt") as root,
        ):
            root.push(b"all are there")
            for worker in (w0, w1, w2):
                worker.pull(bytearray(13)).wait(PATIENCE)
            with stopped(lab):
                for _ in range(ROUNDS):
                    own = [numbers.integers(-(1 << 31), 1 << 31, 5000).astype(np.int32) for _ in WORKERS]
                    layer, total = numbers.bytes(20_000), np.zeros(5000, np.int32)
                    copies = [bytearray(len(layer)) for _ in WORKERS]
                    requests = [root.pull(total), root.push(layer)]
                    for worker, gradient, copy in zip((w0, w1, w2), own, copies, strict=True):
                        requests += [worker.push(gradient), worker.pull(copy)]
                    for request in requests:
                        request.wait(PATIENCE)
                    assert np.array_equal(total, formats.add_lanes(own))
                    assert all(copy == layer for copy in copies)


def test_rounds_pass_while_the_switch_s_process_is_stopped(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    with ShmLab(WORKERS, program=P4SGD, lanes=8, slots=64, in_callers=True) as lab:
        job = lab.slots(WORKERS, slots=8)
        own = [[numbers.integers(-1000, 1000, 77).astype(np.int32) for _ in range(ROUNDS)] for _ in WORKERS]
        wanted = [np.sum(parts, axis=0) for parts in zip(*own, strict=True)]
        with (
            lab.reducer(job, "w0", timeout=PATIENCE) as w0,
            lab.reducer(job, "w1", timeout=PATIENCE) as w1,
            lab.reducer(job, "w2", timeout=PATIENCE) as w2,
            ThreadPoolExecutor(len(WORKERS)) as threads,
        ):
            reducers = (w0, w1, w2)
            for done in [threads.submit(each.all_reduce, np.ones(8, np.int32), None) for each in reducers]:
                done.result()
            with stopped(lab):
                for number in range(ROUNDS):
                    parts = [arrays[number] for arrays in own]
                    pairs = zip(reducers, parts, strict=True)
                    for done in [threads.submit(each.all_reduce, part, None) for each, part in pairs]:
                        done.result()
        for arrays in own:
            assert all(np.array_equal(got, want) for got, want in zip(arrays, wanted, strict=True))


@pytest.mark.parametrize(("setting", "inside"), [(None, True), ("0", False)])
def test_callers_run_the_program_unless_told_otherwise(
    setting: str | None, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(IN_CALLERS, raising=False)
    if setting is not None:
        monkeypatch.setenv(IN_CALLERS, setting)
    with ShmLab(["w0"]) as lab, lab.communicator(lab.allreduce(["w0"]), "w0") as rank:
        rank.all_reduce(np.ones(100, np.int32)).wait(PATIENCE)
        assert rank.stats()["in_callers"] == inside
