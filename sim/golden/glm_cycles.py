"""How many clocks P4SGD's hardware takes: Equations 1 to 3 and Table I of the paper, and our pipeline clock by clock.

The equations are estimates in seconds.  `mini_batches` follows micro-batches through our pipeline: forward
propagation, all-reduce, backward propagation of the replayed planes, update, and the credit that lets the next
mini-batch read a chunk's weights as soon as they are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from catchment.host.glm.shares import Shares, micro_batches
from catchment.wire.generated.glm_numbers import BANKS, ROUND_SLOTS

CLOCK_HZ: Final = 250e6
"""The clock of the engines (Table III)."""
WEIGHT_BITS: Final = 32


@dataclass(frozen=True, slots=True)
class Workload:
    """What is trained on: samples, features (S and D of Table I)."""

    name: str
    samples: int
    features: int


PAPER_WORKLOADS: Final = (
    Workload("gisette", 6_000, 5_000),
    Workload("real_sim", 72_309, 20_958),
    Workload("rcv1", 20_242, 47_236),
    Workload("amazon_fashion", 200_000, 332_710),
    Workload("avazu", 40_428_967, 1_000_000),
)
"""Table II."""


@dataclass(frozen=True, slots=True)
class Network:
    """An all-reduce: `latency` seconds for the first bit (T_l), then `bandwidth` bits a second (BW)."""

    latency: float = 1.2e-6
    bandwidth: float = 100e9

    def seconds(self, elements: int) -> float:
        """The time of an all-reduce of 32-bit elements."""
        return elements * WEIGHT_BITS / self.bandwidth + self.latency


PAPER_NETWORK: Final = Network()
"""1.2 us (section V-B) and 100 Gb/s links (section V-A)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A training of the paper's evaluation: B, the precision, M workers of so many engines."""

    workers: int = 8
    engines: int = 8
    bits: int = 4
    batch: int = 64

    def shares(self, workload: Workload) -> Shares:
        """Which worker and engine has which feature, model-parallel."""
        return Shares(workload.features, self.workers, self.engines)


def pass_clocks(shares: Shares, bits: int) -> int:
    """Clocks in which a micro-batch's planes go through the engines: ceil(D / (64 workers engines)) * bits."""
    return shares.engine_chunks * bits


# ---- Table I ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    """Table I, in elements of a worker, and elements sent in an iteration."""

    model: float
    dataset: float
    network: int


def memory(workload: Workload, setting: Setting, *, data_parallel: bool) -> Memory:
    """Table I."""
    dataset = workload.samples * workload.features / setting.workers
    if data_parallel:
        return Memory(workload.features, dataset, workload.features)
    return Memory(workload.features / setting.workers, dataset, setting.batch)


def data_parallel_iteration(workload: Workload, setting: Setting, network: Network = PAPER_NETWORK) -> float:
    """Equation 1, seconds: T_fD + T_bD / B + D / BW + T_l.

    A worker's B / M samples go through engines that hold the whole model, eight at a time.
    """
    whole = Shares(workload.features, 1, setting.engines)
    rounds = micro_batches(-(-setting.batch // setting.workers))
    forward = rounds * pass_clocks(whole, setting.bits) / CLOCK_HZ
    return forward + forward / rounds + network.seconds(workload.features)


def vanilla_iteration(workload: Workload, setting: Setting, network: Network = PAPER_NETWORK) -> float:
    """Equation 2, seconds: T_fM + T_bM + B / BW + T_l."""
    forward = _forward_seconds(workload, setting)
    return 2 * forward + network.seconds(setting.batch)


def micro_batch_iteration(workload: Workload, setting: Setting, network: Network = PAPER_NETWORK) -> float:
    """Equation 3, seconds: MB / B * T_fM + T_bM + MB / BW + T_l."""
    forward = _forward_seconds(workload, setting)
    return forward / micro_batches(setting.batch) + forward + network.seconds(BANKS)


def _forward_seconds(workload: Workload, setting: Setting) -> float:
    return micro_batches(setting.batch) * pass_clocks(setting.shares(workload), setting.bits) / CLOCK_HZ


# ---- the pipeline -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The constants of a worker, in clocks; those of rtl/glm as its tests measure them.

    Args:
        forward: from a micro-batch's last plane to its sums' frame leaving the worker.
        backward: from the sums of all workers arriving to the first plane that is replayed.
        update: from a chunk's last replayed plane to its weights being read.
        gap: between micro-batches in forward, and in backward propagation.
        row_clocks: rows of a chunk: an update takes one a clock, and no micro-batch is faster backward.
        replay_words: planes that wait between forward and backward propagation, of an engine.
        start: from the start to the first plane, less what a chunk is written before it could be read.
        window: slots of the all-reduce: so many rounds are under way, from their frame to their confirmation.
        confirm: beside two all-reduces (sums and confirmation), what a slot is taken before its next frame leaves.
    """

    forward: int = 23
    backward: int = 9
    update: int = 20
    gap: int = 0
    row_clocks: int = 4
    replay_words: int = 8192
    start: int = 12
    window: int = ROUND_SLOTS
    confirm: int = 11


NIC_OUT_CLOCKS: Final = 12
"""What rtl/glm takes from the last bank's sum to the last beat of its frame at the MAC."""
NIC_BACK_CLOCKS: Final = 3
"""What rtl/glm takes from the last beat of the sum's frame to the full activations."""


@dataclass(frozen=True, slots=True)
class _Replay:
    """Backward propagation of a micro-batch: when it begins, and clocks from a chunk to the next."""

    begin: int
    pace: int


def mini_batches(sizes: list[int], slots: int, bits: int, all_reduce: int, pipeline: Pipeline) -> list[int]:
    """The clock at which each mini-batch's weights are all written.

    Args:
        sizes: micro-batches of each mini-batch.
        slots: chunks of an engine.
        bits: planes that are read.
        all_reduce: clocks from a worker's frame leaving to the sums arriving.
        pipeline: the worker's constants; its replay memory holds a micro-batch at least.
    """
    planes, update_pace = slots * bits, max(bits, pipeline.row_clocks)
    forward_free, backward_free, credit = 0, 0, 0
    replays: list[_Replay] = []
    left: list[int] = []  # when each micro-batch's frame left
    done = []
    for size in sizes:
        for k in range(size):
            start = max(forward_free, credit, _room_from(replays, slots, bits, pipeline.replay_words))
            # The first one waits for each chunk's update.
            paced = credit + (slots - 1) * update_pace + bits if credit and k == 0 else 0
            forward_free = max(start + planes, paced) + pipeline.gap
            leaves = forward_free - pipeline.gap + pipeline.forward
            if len(left) >= pipeline.window:
                leaves = max(leaves, left[-pipeline.window] + 2 * all_reduce + pipeline.confirm)
            left.append(leaves)
            begin = max(backward_free, leaves + all_reduce + pipeline.backward)
            pace = update_pace if k == size - 1 else bits
            backward_free = begin + max(slots * pace, pipeline.row_clocks) + pipeline.gap
            replays.append(_Replay(begin, pace))
        # The first chunk's weights are written while the others' gradients are still being added up.
        credit = begin + bits + pipeline.update
        done.append(pipeline.start + credit + (slots - 1) * update_pace + pipeline.row_clocks - 1)
    return done


def _room_from(replays: list[_Replay], slots: int, bits: int, replay_words: int) -> int:
    """The first clock of the next micro-batch at which each of its planes finds the place of a replayed one."""
    planes = slots * bits
    first = len(replays) * planes - max(planes, replay_words)  # the plane whose place its first one takes
    edge = -first % planes  # its plane that takes the place of a micro-batch's first
    earliest = 0
    # A replay may be slower than it, but is even: where it begins and ends is what counts.
    for plane in {0, edge - 1, edge, planes - 1}:
        if plane >= 0 and first + plane >= 0:
            older, into = divmod(first + plane, planes)
            chunk, bit = divmod(into, bits)
            earliest = max(earliest, replays[older].begin + chunk * replays[older].pace + bit - plane)
    return earliest


def mini_batch_sizes(samples: int, batch: int) -> list[int]:
    """Micro-batches of each mini-batch of an epoch."""
    return [micro_batches(min(batch, samples - begin)) for begin in range(0, samples, batch)]


SETTLED = 1024
"""Micro-batches of a mini-batch after which each window of them takes as long as the one before."""


def steady_iteration(
    workload: Workload, setting: Setting, pipeline: Pipeline, network: Network = PAPER_NETWORK
) -> float:
    """Seconds of a mini-batch in the middle of an epoch, in our pipeline.

    One that is longer than what the pipeline takes to settle grows by as many clocks with each window of micro-batches:
    two shorter ones, that end as far into a window, say by how many.
    """
    all_reduce = round(network.seconds(BANKS) * CLOCK_HZ)
    slots = setting.shares(workload).engine_chunks

    def clocks(size: int) -> float:
        warm = 4
        done = mini_batches([size] * (2 * warm), slots, setting.bits, all_reduce, pipeline)
        return (done[-1] - done[-1 - warm]) / warm

    size = micro_batches(setting.batch)
    stride = -(-SETTLED // pipeline.window) * pipeline.window
    strides = max(0, (size - stride) // stride - 1)
    shorter = clocks(size - strides * stride)
    grown = strides * (shorter - clocks(size - (strides + 1) * stride)) if strides else 0
    return (shorter + grown) / CLOCK_HZ


def epoch_seconds(workload: Workload, setting: Setting, iteration: float) -> float:
    """The time of an epoch of all samples, at so many seconds a mini-batch."""
    return -(-workload.samples // setting.batch) * iteration
