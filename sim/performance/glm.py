"""P4SGD's training on a cluster: the cycle model of its workers, and an all-reduce over the links and the switch."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from catchment.host.glm.errors import GlmError
from catchment.host.glm.numbers import Numbers
from catchment.host.glm.shares import micro_batches
from catchment.sim.golden.glm_cycles import (
    CLOCK_HZ,
    NIC_BACK_CLOCKS,
    NIC_OUT_CLOCKS,
    PAPER_WORKLOADS,
    Network,
    Pipeline,
    Setting,
    Workload,
    epoch_seconds,
    pass_clocks,
    steady_iteration,
)
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import PICOS_PER_SECOND, frame_bytes
from catchment.sim.performance.quantities import whole
from catchment.sim.performance.run import Outcome, workers_of
from catchment.wire.generated.constants import LANE_BYTES
from catchment.wire.generated.glm_numbers import BANKS

P4SGD = "p4sgd"
"""The workload."""
_SIZES = re.compile(r"([0-9]+)x([0-9]+)")


@dataclass(frozen=True, slots=True)
class GlmTraining:
    """What P4SGD's workers train.

    Attributes:
        data: samples and features.
        batch: samples of a mini-batch; one that is larger than the data holds all of it.
        bits: of a feature.
        engines: of each worker.
    """

    data: Workload
    batch: int = 64
    bits: int = 4
    engines: int = 8

    @classmethod
    def parse(cls, data: str = "rcv1", batch: str = "64", bits: str = "4", engines: str = "8") -> GlmTraining:
        """Read settings; `data`: a set of the paper's Table II, or SAMPLESxFEATURES.

        Raises:
            PerformanceError: there is no such set, or a number is none or out of what hardware takes.
        """
        known = {each.name: each for each in PAPER_WORKLOADS}
        sizes = _SIZES.fullmatch(data)
        if data not in known and sizes is None:
            raise PerformanceError(f"{P4SGD}: no data {data!r}; give {', '.join(known)}, or SAMPLESxFEATURES")
        chosen = Workload(data, int(sizes[1]), int(sizes[2])) if sizes else known[data]
        try:
            made = cls(chosen, whole("batch", batch), whole("bits", bits), whole("engines", engines))
        except ValueError as error:
            raise PerformanceError(f"{P4SGD}: {error}") from None
        if not (1 <= made.bits <= 8 and chosen.samples >= 1):
            raise PerformanceError(f"{P4SGD}: give 1 to 8 bits, and at least one sample of data")
        try:
            Numbers(made.bits, made.batch)
        except GlmError as error:
            raise PerformanceError(f"{P4SGD}: {error}") from None
        return made


def all_reduce_seconds(cluster: Cluster) -> float:
    """Seconds of an all-reduce of 8 x int32 from MAC to MAC: two links and a switch.

    Raises:
        PerformanceError: workers are on several switches, lose frames, or are software.
    """
    workers = workers_of(cluster)
    switches = sorted({cluster.topology.host(name).link.switch for name in workers})
    if len(switches) != 1:
        raise PerformanceError(
            f"p4sgd.p4 adds up the workers of one switch, these are on {len(switches)} ({', '.join(switches[:4])}...): "
            "give a `fabric` of kind one-switch"
        )
    links = cluster.links
    frame = frame_bytes(BANKS * LANE_BYTES) * cluster.host_byte(*workers)
    return (2 * (frame + links.latency) + cluster.switch.pipeline) / PICOS_PER_SECOND


def round_seconds(cluster: Cluster) -> float:
    """The same from a worker's last sum to its full activations; errors as of `all_reduce_seconds`."""
    return all_reduce_seconds(cluster) + (NIC_OUT_CLOCKS + NIC_BACK_CLOCKS) / CLOCK_HZ


def glm_epochs(cluster: Cluster, training: GlmTraining, count: int = 1) -> Outcome:
    """Epochs of all samples; `exposed` is the share in which no engine has a plane of a micro-batch to read.

    Raises:
        PerformanceError: the cluster or the training is not one that the hardware can have.
    """
    batch = min(training.batch, training.data.samples)
    setting = Setting(len(workers_of(cluster)), training.engines, training.bits, batch)
    network = Network(all_reduce_seconds(cluster), math.inf)
    try:
        planes = pass_clocks(setting.shares(training.data), training.bits)
    except GlmError as error:
        raise PerformanceError(f"{P4SGD}: {error}") from None
    iteration = steady_iteration(training.data, setting, Pipeline(), network)
    epoch = epoch_seconds(training.data, setting, iteration)
    reading = micro_batches(batch) * planes / CLOCK_HZ / iteration * epoch
    picos = np.full((count, 1), reading * PICOS_PER_SECOND)
    return Outcome.of(np.full(count, epoch * PICOS_PER_SECOND), picos, None)
