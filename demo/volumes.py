"""Bytes that one worker sends and receives per step: model in network beside ring all-reduce and ZeRO-3.

S parameters, N workers (paper, sections 2.1 and 3.1). A ring all-reduce moves 2(N-1)/N x S elements each way. ZeRO-3
gathers parameters twice and scatters gradients once: (N-1)/N x S each way for each. LuWu receives S parameters twice
(forward and backward) and sends S gradients once, whatever N is. Per collective that is S in place of 2(N-1)S/N,
42.9% less at N = 8: the paper's 2(N-1)/N counts what a worker sends plus what it receives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_INT32 = 4


@dataclass(frozen=True, slots=True)
class Volume:
    """Payload bytes of one worker in one step, headers left out."""

    scheme: str
    sent: float
    received: float

    @property
    def total(self) -> float:
        """Both directions."""
        return self.sent + self.received


def luwu(parameters: int, parameter_bytes: int, gradient_bytes: int = _INT32) -> Volume:
    """Model in network: gradients of `gradient_bytes` up (4, or 2 in packed lanes), parameters down twice."""
    return Volume("LuWu", parameters * gradient_bytes, 2 * parameters * parameter_bytes)


def ring_all_reduce(parameters: int, workers: int, gradient_bytes: int) -> Volume:
    """Data parallelism with every worker holding the model."""
    moved = 2 * (workers - 1) / workers * parameters * gradient_bytes
    return Volume("ring all-reduce", moved, moved)


def zero3(parameters: int, workers: int, parameter_bytes: int, gradient_bytes: int) -> Volume:
    """Model-sharded data parallelism: all-gather forward and backward, reduce-scatter of gradients."""
    share = (workers - 1) / workers * parameters
    moved = share * (2 * parameter_bytes + gradient_bytes)
    return Volume("ZeRO-3", moved, moved)


def measured(stats: Sequence[Mapping[str, float]], workers: int, steps: int) -> Volume:
    """What the workers' endpoints really moved per step: headers, heartbeats, resends and validation included.

    `stats`: of all endpoints of all workers, with bytes_sent and bytes_received over `steps` training steps.
    """
    share = 1 / (workers * steps)
    sent, received = (sum(each[key] for each in stats) * share for key in ("bytes_sent", "bytes_received"))
    return Volume("LuWu, measured", sent, received)


def collective_saving(workers: int) -> float:
    """How much less one LuWu collective moves than one sharded one: 1 - S / (2(N-1)S/N)."""
    if workers < 2:
        return 0.0
    return 1 - workers / (2 * (workers - 1))
