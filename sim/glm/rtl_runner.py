"""Trainings on simulated hardware: the workers of rtl/glm in co-simulation with p4sgd.p4 in the embedded switch."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from catchment.host.glm import Epoch, GlmError, Parallel, Prepared
from catchment.host.glm.shares import micro_batches
from catchment.host.glm.weave import weave
from catchment.rtl.harness.glm_worker import Build, HarnessError, VerilatedWorker
from catchment.rtl.verilate import RtlError
from catchment.sim.cosim.glm.network import GlmNetwork, SlotJob, StalledError, embedded_switch
from catchment.sim.cosim.glm.training import hardware_training
from catchment.sim.golden.glm_cycles import CLOCK_HZ
from catchment.sim.world import Faults
from catchment.sim.world.star import Hops
from catchment.wire.generated.glm_numbers import BANKS, CHUNK, ENGINE_WEIGHTS, ROW_LANES

_HOP = 100
"""Clocks from a worker to the switch, and back: 0.4 us at 250 MHz."""
_MEMORY_LATENCY = 60
_SEED = 1
"""The seed of the frames that are lost: equal trainings lose the same ones."""
_LEAST_ROWS, _LEAST_REPLAY = 64, 256


class RtlRunner:
    """All workers of a training as Verilated hardware in this process; the first run of a shape compiles it.

    Args:
        loss: probability that a frame is lost between a worker and the switch.
        on_progress: hears what share of the training is done.
        on_notice: hears of what takes long before the training begins.
    """

    def __init__(
        self,
        on_progress: Callable[[float], None] | None = None,
        *,
        loss: float = 0.0,
        on_notice: Callable[[str], None] | None = None,
    ) -> None:
        self._on_progress = on_progress
        self._on_notice = on_notice
        self._hops = Hops(Faults(loss=loss), _HOP)

    def run(self, prepared: Prepared, on_epoch: Callable[[Epoch], None]) -> None:
        """Run a training; `on_epoch` hears of each epoch.

        Raises:
            GlmError: the hardware does not do this, or failed.
        """
        training = prepared.training
        if training.parallel != Parallel.MODEL:
            raise GlmError("the hardware divides features, not samples", "take --parallel model")
        if prepared.importance is not None:
            raise GlmError("the hardware has no sample weights", "leave them out, or take software workers")
        shape = build_for(prepared)
        job = SlotJob(training.workers, slots=shape.slots, rto=20 * _HOP)
        labels = _padded(prepared.labels)
        if self._on_notice is not None and not shape.compiled:
            self._on_notice(
                f"compiling the hardware: a worker of {_counted(shape.engines, 'engine')}; a minute or more, once"
            )
        try:
            with ExitStack() as exits:
                workers = []
                for wid in range(training.workers):
                    codes = prepared.encoded.columns(prepared.shares.of_worker(wid)).planes()
                    worker = exits.enter_context(VerilatedWorker(shape, weave(codes, prepared.shares), labels))
                    worker.pace(_MEMORY_LATENCY)
                    worker.join(job.rounds(wid))
                    worker.weights = _laid_out(prepared, wid, worker.chunks)
                    workers.append(worker)
                network = GlmNetwork(workers, embedded_switch(job), seed=_SEED, hops=self._hops)
                self._epochs(prepared, workers, network, on_epoch)
        except (HarnessError, RtlError, StalledError) as error:
            raise GlmError(str(error)) from error

    def _epochs(
        self,
        prepared: Prepared,
        workers: list[VerilatedWorker],
        network: GlmNetwork,
        on_epoch: Callable[[Epoch], None],
    ) -> None:
        training, saturated, lost = prepared.training, 0, 0
        per_epoch = micro_batches(len(prepared.labels))
        for epoch, step in enumerate(prepared.steps):
            begin, first = time.perf_counter(), network.now
            settings = hardware_training(training.numbers, step, training.loss)
            for worker in workers:
                worker.start(settings)
            network.settle(on_sums=self._share_of(epoch * per_epoch, per_epoch * training.epochs))
            counts = [worker.counts() for worker in workers]
            if any(count.error for count in counts):
                raise GlmError("a memory answered with an error", "that is a bug of the simulation")
            saturated += sum(count.saturated for count in counts)
            clocks = max(count.clocks for count in counts)
            facts = {
                "all_reduce_seconds": np.mean([_all_reduce_clocks(worker) for worker in workers]) / CLOCK_HZ,
                "frames_lost": network.lost - lost,
                "clocks": clocks,
                "clocks_per_micro_batch": clocks / per_epoch,
                "starved_clocks": max(count.starved for count in counts),
                "simulated_clocks": network.now - first,
            }
            lost = network.lost
            weights = self._weights(prepared, workers)
            on_epoch(Epoch(weights, time.perf_counter() - begin, saturated, facts))

    def _share_of(self, before: int, all_sums: int) -> Callable[[int], None]:
        return lambda sums: self._progress((before + sums) / all_sums)

    def _progress(self, share: float) -> None:
        if self._on_progress is not None:
            self._on_progress(min(1.0, share))

    @staticmethod
    def _weights(prepared: Prepared, workers: list[VerilatedWorker]) -> NDArray[np.int32]:
        """All features' weights in order, from the engines' memories."""
        parts = []
        for wid, worker in enumerate(workers):
            by_slot = worker.weights.reshape(worker.shape.engines, -1, CHUNK).transpose(1, 0, 2)
            parts.append(by_slot.reshape(-1)[: len(prepared.shares.of_worker(wid))])
        return np.concatenate(parts).astype(np.int32)


def _all_reduce_clocks(worker: VerilatedWorker) -> float:
    """Mean over an epoch: from a micro-batch's sums being ready to its full activations."""
    return float(np.mean(worker.events("full")) - np.mean(worker.events("sums")))


def _counted(number: int, name: str) -> str:
    return f"{number} {name}" + ("" if number == 1 else "s")


def _laid_out(prepared: Prepared, wid: int, chunks: int) -> NDArray[np.int64]:
    """A worker's weights before the first epoch, shape (engines, chunks * 64)."""
    engines = prepared.training.engines
    flat = np.zeros(engines * chunks * CHUNK, np.int64)
    if prepared.start is not None:
        share = prepared.shares.of_worker(wid)
        flat[: len(share)] = prepared.start[share.start : share.stop]
    return flat.reshape(chunks, engines, CHUNK).transpose(1, 0, 2).reshape(engines, chunks * CHUNK).copy()


def build_for(prepared: Prepared) -> Build:
    """The smallest hardware that this training fits into.

    Raises:
        GlmError: an engine's share of the model is larger than its memory.
    """
    shares = prepared.shares
    if shares.engine_chunks * CHUNK > ENGINE_WEIGHTS:
        raise GlmError(
            f"{shares.engine_chunks * CHUNK} weights for an engine of {ENGINE_WEIGHTS}", "take more workers or engines"
        )
    rows = _power_of_two(shares.engine_chunks * CHUNK // ROW_LANES, _LEAST_ROWS)
    # a micro-batch's planes, and those of the next ones while its sums travel
    words = _power_of_two(2 * shares.engine_chunks * prepared.training.bits, _LEAST_REPLAY)
    return Build(shares.engines, model_rows=rows, replay_words=words)


def _power_of_two(number: int, least: int) -> int:
    return max(least, 1 << (number - 1).bit_length())


def _padded(labels: NDArray[np.int32]) -> NDArray[np.int64]:
    """Labels by micro-batch; samples that fill up the last have 0, and no features."""
    rows = np.zeros((micro_batches(len(labels)), BANKS), np.int64)
    rows.reshape(-1)[: len(labels)] = labels
    return rows
