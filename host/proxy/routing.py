"""Which proxy a tensor goes to (COARSE, III-E): the one of least latency if it is small, of most bandwidth if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catchment.host.given_numbers import is_real
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.links import LinkCurve


@dataclass(frozen=True, slots=True)
class Routing:
    """One client's table.

    Attributes:
        threshold: S, bytes: tensors of at least so many go to `bandwidth`, smaller ones to `latency`.
        latency: name of the proxy that answers first.
        bandwidth: name of the proxy with the highest rate.
    """

    threshold: int
    latency: str
    bandwidth: str

    def proxy(self, size: int) -> str:
        """The proxy of a tensor of `size` bytes."""
        return self.bandwidth if size >= self.threshold else self.latency

    @property
    def reason(self) -> str:
        """The decision in a sentence."""
        if self.latency == self.bandwidth:
            return f"{self.latency} answers first and has the highest rate: it gets every tensor"
        return (
            f"tensors of {self.threshold} bytes and more go to {self.bandwidth}, which has the highest rate; smaller "
            f"ones to {self.latency}, which answers first"
        )


def route(links: Mapping[str, LinkCurve], *, within: float = 0.0) -> Routing:
    """The table of a client with these links, by the proxies' names.

    Args:
        links: at least one.
        within: proxies whose rate or latency is worse by at most this share count as equal, and the first by name is
            taken of equals, so that noise of a measurement does not divide what belongs together.

    Raises:
        ProxyError: no link, or `within` is not a share.
    """
    if not isinstance(links, Mapping) or not all(isinstance(link, LinkCurve) for link in links.values()):
        raise ProxyError(f"links {links!r:.80}: give a LinkCurve by each proxy's name")
    if not links:
        raise ProxyError("a client without a link to any proxy: measure one at least")
    if not (is_real(within) and 0 <= within < 1):
        raise ProxyError(f"within {within!r}: a share from 0 to below 1")
    least = min(link.latency for link in links.values())
    most = max(link.rate for link in links.values())
    quick = {name for name in links if links[name].latency * (1 - within) <= least}
    fast = {name for name in links if links[name].rate >= most * (1 - within)}
    if both := quick & fast:
        return Routing(0, min(both), min(both))
    latency, bandwidth = min(quick), min(fast)
    return Routing(_crossing(links[latency], links[bandwidth]), latency, bandwidth)


def _crossing(near: LinkCurve, wide: LinkCurve) -> int:
    """The least size from which on `wide` is never slower than `near`; the curves are linear between their points."""
    sizes = sorted({size for link in (near, wide) for size, _ in link.points})
    sizes.append(2 * sizes[-1])
    while wide.seconds(sizes[-1]) > near.seconds(sizes[-1]) and sizes[-1] < 1 << 50:
        sizes.append(2 * sizes[-1])
    slower = [size for size in sizes if wide.seconds(size) > near.seconds(size)]
    if not slower:
        return 0
    low = slower[-1]
    high = next((size for size in sizes if size > low), low + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide.seconds(middle) > near.seconds(middle) else (low, middle)
    return high
