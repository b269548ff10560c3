"""Dual synchronization (COARSE, III-F): some gradients by the proxies during backward, the rest by the workers.

Backward produces the last layers first, so those go to the proxies and are done first; the first layers, produced last
and needed first, are summed by the workers among themselves when backward has ended. With n bytes of gradients, m of
them by the proxies, p workers and c = 2(p-1)/p, a step takes

    T(m) = max( forward + backward + c (n - m) / workers' rate ,  forward + m / proxies' rate )

The first term falls with m, the second rises, so the best m is where they meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from catchment.host.given_numbers import as_real, as_whole, is_real, is_whole, keep_real, keep_whole
from catchment.host.given_several import in_order
from catchment.host.proxy.errors import ProxyError

_MOST = 1 << 60
"""Bytes of a layer."""
HYSTERESIS = 0.97
"""A new plan takes the place of the old one if its step is shorter than this share of the old one's."""


@dataclass(frozen=True, slots=True)
class DualCosts:
    """What a step is made of.

    Attributes:
        forward, backward: seconds of the two halves of a pass.
        workers: p, at least 2.
        among_workers: bytes per second of the workers' own ring.
        among_proxies: bytes per second of the proxies' ring.
        to_proxy: bytes per second of a worker's link to its proxy, which the paper's formula leaves out.
    """

    forward: float
    backward: float
    workers: int
    among_workers: float
    among_proxies: float
    to_proxy: float = math.inf

    def __post_init__(self) -> None:
        seconds = self.forward, self.backward
        if not is_whole(self.workers, 2, _MOST) or not all(is_real(number) and number >= 0 for number in seconds):
            raise ProxyError(f"{self}: two workers or more, and seconds from 0 on")
        rates = self.among_workers, self.among_proxies, self.to_proxy
        if not all(_is_endless(rate) or (is_real(rate) and rate > 0) for rate in rates):
            raise ProxyError(f"{self}: rates are positive")
        keep_whole(self, "workers")
        keep_real(self, "forward", "backward", "among_workers", "among_proxies", "to_proxy")

    @property
    def share(self) -> float:
        """c: what a ring moves in each direction for each byte."""
        return 2 * (self.workers - 1) / self.workers

    @property
    def proxy_rate(self) -> float:
        """Bytes of gradients that the proxies take in and sum in a second."""
        return min(self.to_proxy, self.among_proxies / self.share)

    def seconds(self, proxied: float, total: float) -> float:
        """T(m): a step with `proxied` of `total` bytes by the proxies."""
        workers = self.forward + self.backward + self.share * (total - proxied) / self.among_workers
        return max(workers, self.forward + proxied / self.proxy_rate)

    def best(self, total: float) -> float:
        """The m of least T(m), as if tensors could be divided anywhere."""
        ring = self.share / self.among_workers
        return min(total, (self.backward + ring * total) / (1 / self.proxy_rate + ring))


@dataclass(frozen=True, slots=True)
class DualPlan:
    """A cut of the model.

    Attributes:
        first: layers from this number on go to the proxies; those before it to the workers.
        proxied: bytes of those layers.
        seconds: of a step.
    """

    first: int
    proxied: int
    seconds: float


def dual_plan(sizes: Sequence[int], costs: DualCosts) -> DualPlan:
    """The best cut between whole layers, of which `sizes` are the bytes in forward order.

    Raises:
        ProxyError: there is no layer, or one of less than no bytes, or of more than any machine has, or of a number
            that is not whole.
    """
    if not isinstance(costs, DualCosts):
        raise ProxyError(f"a plan at costs {costs!r:.80}: give DualCosts")
    several = in_order(sizes)
    whole = [None] if several is None else [as_whole(size) for size in several]
    given, sizes = sizes, [size for size in whole if size is not None]
    if len(sizes) != len(whole):
        raise ProxyError(f"a plan for layers of {given!r:.80} bytes: give several whole numbers")
    if not sizes or min(sizes) < 0:
        raise ProxyError(f"a plan for layers of {sizes} bytes: give one at least, none below 0")
    if max(sizes) > _MOST:
        raise ProxyError(f"a plan for a layer of {max(sizes)} bytes: at most {_MOST}")
    total = sum(sizes)
    produced = [0, *accumulate(reversed(sizes))]  # by the number of layers at the end that go to the proxies
    return min(
        (DualPlan(len(sizes) - count, m, costs.seconds(m, total)) for count, m in enumerate(produced)),
        key=lambda plan: (plan.seconds, plan.proxied),
    )


def better(new: DualPlan, old_seconds: float) -> bool:
    """Whether a new plan is worth the change; `old_seconds`: of a step by the old plan at the present costs."""
    return new.seconds < HYSTERESIS * old_seconds


def _is_endless(rate: Any) -> bool:
    """Whether it is infinite, and no whole number beyond all floats."""
    return as_real(rate) == math.inf and as_whole(rate) is None
